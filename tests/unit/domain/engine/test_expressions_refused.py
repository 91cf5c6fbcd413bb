"""Templates: what they refuse."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geomill.domain.engine.expressions import compile_value, environment
from geomill.errors import ExpressionError

SCOPE: dict[str, Any] = {
    "x": {"a": [1, 2], "items": {"b": None}, "s": "text"},
    "n": 3,
    "s": "abc",
    "nan": "nan",
    "nodes": {},
}


def refusal(template: str) -> str:
    scope = copy.deepcopy(SCOPE)
    with pytest.raises(ExpressionError) as caught:
        compile_value(template).render(scope)
    assert scope == SCOPE
    return str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ }}",
        "{{ a b }}",
        "{{ a",
        "{{ a.",
        "{{ 'a }}",
        "{% if a %}",
        "{% nonsense %}",
        "{{ a | nonsense }}",
        "{{ a is x y }}",
        "{# never closed",
        "{% set a %}",
        "{{ a" + ")" * 3 + " }}",
        "{{ " + "(" * 5000 + " }}",
        "{{ " + "-" * 9000 + "1 }}",
    ],
)
def test_bad_syntax_is_refused_when_compiled(template: str) -> None:
    with pytest.raises(ExpressionError, match="cannot be read"):
        compile_value([{"deep": template}])


@pytest.mark.parametrize(
    "template", ["{% include 'a' %}", "{% extends s %}", "{% import 'a' as b %}x", "{% from 'a' import b %}x"]
)
def test_other_files_are_refused_when_compiled(template: str) -> None:
    with pytest.raises(ExpressionError, match="reads another file"):
        compile_value(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ s.__class__ }}",
        "{{ s.__class__.__mro__ }}",
        "{{ s.__class__.__base__.__subclasses__() }}",
        "{{ ''['__class__'] }}",
        "{{ s | attr('__class__') }}",
        "{{ s.upper.__self__ }}",
        "{{ s.format.__globals__ }}",
        "{{ range.__init__.__globals__ }}",
        "{{ '{0.__class__.__mro__}'.format(s) }}",
        "{{ '{a.__class__}'.format(a=s) }}",
        "{{ '{0.__class__}'.format_map({'0': s}) }}",
        "{{ (['{0.__class__}'] | map('format', s) | first).__class__ }}",
        "{{ [s] | map(attribute='__class__') | list }}",
        "{{ (s | attr('format'))('{0.__class__}').__class__ }}",
        "{{ self.__init__ }}",
        "{{ self._TemplateReference__context }}",
        "x {{ s.__class__ }}",
        "{% set c = s.__class__ %}{{ c }}",
    ],
)
def test_the_sandbox_cannot_be_left(template: str) -> None:
    """A mistake that the text shows is refused when the workflow is checked, before any job."""
    with pytest.raises(ExpressionError, match=r"is refused: it (reads|names|uses)"):
        compile_value(template)


@pytest.mark.parametrize(
    "template",
    ["{{ s['__cla' ~ 'ss__'] }}", "{{ [s] | map(attribute='__cla' ~ 'ss__') | list }}", "{{ s[x.private] }}"],
)
def test_a_name_that_is_put_together_is_refused_when_it_is_used(template: str) -> None:
    with pytest.raises(ExpressionError, match="cannot be evaluated"):
        compile_value(template).render({**SCOPE, "x": {"private": "__class__"}})


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 9**99999999 }}", "the power is too large"),
        ("{{ 9 ** 9 ** 9 }}", "the power is too large"),
        ("{{ n ** 99999999 }}", "the power is too large"),
        ("{{ 'a' * 10 ** 9 }}", "too long"),
        ("{{ range(10 ** 9) | list }}", "its range has more than"),
        ("{% for a in range(9) %}{% for b in range(9) %}{% endfor %}{% endfor %}", "a loop within a loop"),
        ("{% for a in x.a recursive %}{{ loop(x.a) }}{% endfor %}", "a loop within a loop"),
        ("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "a program of its own"),
        ("{% set s = s ~ s %}" * 40 + "{{ s }}", "sets more than"),
        ("{{ '" + "x" * 60_000 + "' }}", "too long"),
    ],
)
def test_what_has_no_end_is_refused_when_compiled(template: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        compile_value(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
        "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
        "{{ range(100000) | map('string') | join('x' * 1000000) }}",
        "{{ ('x' * 1000000).join(range(100000) | map('string')) }}",
        "{{ x | tojson(indent=1000000000) }}",
        "{% for i in range(100000) %}{{ 'x' * 1000000 }}{% endfor %}",
        "{% for i in range(100000) %}" + "x" * 40_000 + "{% endfor %}",
    ],
)
def test_filters_and_methods_that_multiply_have_a_bound(template: str) -> None:
    refusal(template)


def test_small_texts_are_replaced_and_joined_as_ever() -> None:
    scope = {"s": "a-b", "x": {"a": [1, 2]}}
    assert compile_value("{{ s | replace('-', '') }}").render(scope) == "ab"
    assert compile_value("{{ s.replace('-', '+', 1) }}").render(scope) == "a+b"
    assert compile_value("{{ x.a | join(', ') }}").render(scope) == "1, 2"
    assert compile_value("{{ ','.join(['a', 'b']) }}").render(scope) == "a,b"
    assert compile_value("{{ x | tojson }}").render(scope) == '{"a": [1, 2]}'


@pytest.mark.parametrize(
    "template",
    [
        "{{ x.a.append(3) }}",
        "{{ x.a.clear() }}",
        "{{ x.a.sort() }}",
        "{{ x.update({'b': 1}) }}",
        "{{ x.pop('a') }}",
        "{% set x.n = 1 %}done",
        "{% if x.a.append(3) %}{% endif %}done",
    ],
)
def test_inputs_cannot_be_changed(template: str) -> None:
    assert "cannot be evaluated" in refusal(template)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 10 ** 65 }}", "the power is too large"),
        ("{{ 1001 ** 2 }}", "the power is too large"),
        ("{{ 9 ** 9 ** 9 }}", "the power is too large"),
        ("{{ n ** (n * 100) }}", "the power is too large"),
        ("{{ 'a' * 10 ** 9 }}", "too long"),
        ("{{ 10 ** 9 * s }}", "too long"),
        ("{{ [0] * 10 ** 9 }}", "too long"),
        ("{{ (1, 2) * 600000 }}", "too long"),
        ("{{ 'a' * 1000 * 1000 * 2 }}", "too long"),
        ("{{ range(n * 10 ** 9) | list }}", "Range too big"),
    ],
)
def test_what_would_take_all_memory_is_refused(template: str, reason: str) -> None:
    assert reason in refusal(template)


def test_the_largest_power_and_product_are_allowed() -> None:
    assert compile_value("{{ 1000 ** 64 }}").render({}) == 1000**64
    assert len(compile_value("{{ 'a' * 1000000 }}").render({})) == 1_000_000


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 1e308 * 10 }}", "not a JSON number"),
        ("{{ nan | float }}", "not a JSON number"),
        ("{{ [nan | float] }}", "not a JSON number"),
        ("{{ {'a': nan | float} }}", "not a JSON number"),
        ("is {{ nan | float }}", "not a JSON number"),
        ("{{ 'a\\x00' }}", "NUL"),
        ("{{ {'\\x00': 1} }}", "NUL"),
        ("a {{ '\\x00' }}", "NUL"),
        ("{{ '\\ud800' }}", "surrogate"),
        ("{{ s.encode() }}", "a bytes, which is not a JSON value"),
        ("{{ s.upper }}", "not a JSON value"),
        ("{{ (0 - 8) ** 0.5 }}", "a complex, which is not a JSON value"),
        ("a {{ 'x'.upper }}", "not a JSON value"),
    ],
)
def test_what_cannot_be_stored_is_refused(template: str, reason: str) -> None:
    assert reason in refusal(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 // 0 }}",
        "{{ s + 1 }}",
        "{{ n in n }}",
        "{{ n | length }}",
        "{{ x.a.y() }}",
        "{{ s | dictsort }}",
        "{{ s | truncate(1) }}",
        "{{ n | xmlattr }}",
        "{{ 1e999 }}",
        "a {{ 1e999 }}",
        "{{ s ** 2 }}",
        "{{ x[[1]] }}",
        "{{ s[none] }}",
        "{{ x.a | sum(start='a') }}",
        "{{ x.a | map('nonsense') }}",
    ],
)
def test_whatever_an_expression_raises_becomes_our_error(template: str) -> None:
    assert "cannot be evaluated" in refusal(template)


@pytest.mark.parametrize("name", ["lipsum", "cycler", "joiner", "namespace", "dict", "config", "request", "_"])
def test_there_are_no_globals_but_range(name: str) -> None:
    assert f"'{name}'" in refusal(f"{{{{ {name}() }}}}")
    assert set(environment().globals) == {"range"}


@pytest.mark.parametrize("template", ["{{ x.a | random }}", "n {{ x.a | random }}", "{{ x.a | map('random') }}"])
def test_there_is_no_chance(template: str) -> None:
    assert "random" in refusal(template)


WORDS = (
    "{{ }} {% %} {# #} x .a [0] s n nodes 1 1.5 't' ( ) [ ] | default upper list map join dictsort int ** * + - / ~ "
    "== < is defined none if else endif for in endfor set = , : not and \x00 é"
)
PIECES = st.sampled_from([*WORDS.split(" "), "\n", " "])


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(PIECES, max_size=12).map(" ".join))
@example("{{ s | dictsort }}")
@example("{{ 1e999 }}")
def test_any_text_is_rendered_or_refused_with_our_error(text: str) -> None:
    _render_or_refuse(text)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(PIECES, min_size=1, max_size=8).map(" ".join), st.sampled_from(["{{ %s }}", "a {{ %s }}", "{%% if %s %%}"])
)
def test_any_expression_is_evaluated_or_refused_with_our_error(source: str, around: str) -> None:
    _render_or_refuse(around % source)


def _render_or_refuse(text: str) -> None:
    scope = copy.deepcopy(SCOPE)
    with suppress(ExpressionError):
        compile_value(text).render(scope)
    assert scope == SCOPE
