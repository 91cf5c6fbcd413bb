"""Templates: which values they give. What they refuse and what they read is in the sister files."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.engine.expressions import compile_value, environment
from geomill.errors import ExpressionError

SCOPE: dict[str, Any] = {
    "inputs": {
        "year": "2025",
        "code": "007",
        "count": 3,
        "ratio": 0.5,
        "flag": True,
        "nothing": None,
        "names": ["a", "b"],
        "deep": {"a": {"b": [10, {"c": "found"}]}},
        "text": "héllo",
    },
    "nodes": {"done": {"status": "completed", "output": {"n": 1}}, "skipped": {"status": "skipped", "error": None}},
    "odd": {"items": 1, "keys": 2, "a b": 3},
}


def render(template: Any, scope: dict[str, Any] | None = None) -> Any:
    return compile_value(template).render(SCOPE if scope is None else scope)


def same(value: Any, expected: Any) -> bool:
    return value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ inputs.count }}", 3),
        ("{{ inputs.ratio }}", 0.5),
        ("{{ inputs.flag }}", True),
        ("{{ inputs.nothing }}", None),
        ("{{ inputs.names }}", ["a", "b"]),
        ("{{ inputs.deep.a }}", {"b": [10, {"c": "found"}]}),
        ("{{ inputs.deep.a.b[1].c }}", "found"),
        ("{{ inputs['names'][0] }}", "a"),
        ("{{ inputs.names[-1] }}", "b"),
        ("{{ inputs.names[1:] }}", ["b"]),
        ("  {{ inputs.count }}\n", 3),
        ("{{- inputs.count -}}", 3),
        ("{{ inputs.count + 1 }}", 4),
        ("{{- inputs.count + 1 -}}", 4),
        ("{{ inputs.count / 2 }}", 1.5),
        ("{{ inputs.count > 2 }}", True),
        ("{{ -inputs.count }}", -3),
        ("{{ -1 }}", -1),
        ("{{ - 1 + 3 }}", 2),
        ("{{ inputs.count, 4 }}", [3, 4]),
        ("{# why #}{{ inputs.count + 1 }}", 4),
        ("{{ inputs.count + 1 }}{# why #}", 4),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ (1, 2) }}", [1, 2]),
        ("{{ {'a': inputs.count, 1: none} }}", {"a": 3, "1": None}),
        ("{{ inputs.names | map('upper') }}", ["A", "B"]),
        ("{{ inputs.text | e }}", "héllo"),
        ("{{ inputs.names | length }}", 2),
        ("{{ inputs.text.upper() }}", "HÉLLO"),
        ("{{ 2 ** 10 }}", 1024),
        ("{{ 'ab' * 2 }}", "abab"),
    ],
)
def test_a_single_expression_keeps_the_type_of_its_value(template: str, expected: Any) -> None:
    assert same(render(template), expected)


@pytest.mark.parametrize("name", ["year", "code"])
@pytest.mark.parametrize("template", ["{{{{ inputs.{} }}}}", "{{{{ inputs.{} | trim }}}}"])
def test_text_that_looks_like_a_number_stays_text(name: str, template: str) -> None:
    assert same(render(template.format(name)), SCOPE["inputs"][name])


def test_a_filter_s_marked_up_string_becomes_a_plain_one() -> None:
    assert type(render("{{ inputs.text | e }}")) is str


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("v{{ inputs.year }}", "v2025"),
        ("{{ inputs.count }} tiles", "3 tiles"),
        ("{{ inputs.count }}{{ inputs.count }}", "33"),
        ("is {{ inputs.flag }}", "is true"),
        ("is {{ inputs.nothing }}", "is null"),
        ("in {{ inputs.names }}", 'in ["a", "b"]'),
        ("of {{ inputs.deep.a.b }}", 'of [10, {"c": "found"}]'),
        ("of {{ [inputs.text] }}", 'of ["héllo"]'),
        ("{% if inputs.flag %}yes{% else %}no{% endif %}", "yes"),
        ("{% for n in inputs.names %}{{ n }},{% endfor %}", "a,b,"),
        ("{% raw %}{{ as it is }}{% endraw %}", "{{ as it is }}"),
        ("{% set n = 1 %}{{ n }}", "1"),
        (" {{ inputs.year }} x ", " 2025 x "),
        ("first {{ inputs.count }}\nlast\n", "first 3\nlast\n"),
        ("{# only this #}", ""),
    ],
)
def test_text_around_expressions_makes_a_string_with_json_inside(template: str, expected: str) -> None:
    assert same(render(template), expected)


@pytest.mark.parametrize("value", [1, 1.5, True, None, "plain", "2025", "", "50 % {of} it", "a\n", [], {}])
def test_what_has_no_template_is_left_as_it_is(value: Any) -> None:
    compiled = compile_value(value)
    assert same(compiled.render({}), value)
    assert compiled.references == ()


def test_templates_are_found_in_lists_and_mappings() -> None:
    value = {"a": ["{{ inputs.count }}", {"b": "x{{ inputs.year }}"}], 1: ("{{ inputs.flag }}", 2)}
    compiled = compile_value(value)
    assert compiled.render(SCOPE) == {"a": [3, {"b": "x2025"}], "1": [True, 2]}
    assert [str(reference) for reference in compiled.references] == ["inputs.count", "inputs.year", "inputs.flag"]


def test_a_view_becomes_a_plain_mapping() -> None:
    scope = {"view": MappingProxyType({"a": MappingProxyType({"b": 1})})}
    assert same(render("{{ view }}", scope), {"a": {"b": 1}})
    assert type(render("{{ view.a }}", scope)) is dict


# Undefined


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ input.count }}", "there is no 'input' (did you mean 'inputs'?)"),
        ("{{ inputs.cuont }}", "there is no 'cuont' (did you mean 'count'?)"),
        ("{{ inputs.cuont + 1 }}", "there is no 'cuont' (did you mean 'count'?)"),
        ("n={{ inputs.cuont }}", "there is no 'cuont' (did you mean 'count'?)"),
        ("{{ nodes.skipped.output.n }}", "there is no 'output' (known: error, status)"),
        ("{{ nodes.skipped.output.n * 2 }}", "there is no 'output'"),
        ("{{ inputs.names[5] }}", "has no element 5"),
        ("{{ inputs.count.x }}", "has no attribute 'x'"),
        ("{{ inputs.nothing.x }}", "has no attribute 'x'"),
        ("{{ [inputs.gone] }}", "there is no 'gone'"),
        ("{{ {'a': inputs.gone} }}", "there is no 'gone'"),
        ("{{ inputs.gone == 1 }}", "there is no 'gone'"),
        ("{{ inputs.gone and 1 }}", "there is no 'gone'"),
        ("{{ inputs.gone ~ 'x' }}", "there is no 'gone'"),
        ("{{ 1 if inputs.gone else 2 }}", "there is no 'gone'"),
        ("{% for n in inputs.gone %}{{ n }}{% endfor %}", "there is no 'gone'"),
        ("{{ 1 if false }}", "cannot be evaluated"),
    ],
)
def test_what_is_undefined_is_an_error_that_names_it(template: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        render(template)
    assert message in str(caught.value)
    assert repr(template) in str(caught.value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ inputs.gone | default(7) }}", 7),
        ("{{ inputs.gone | d(7) }}", 7),
        ("{{ inputs.count | default(7) }}", 3),
        ("{{ inputs.nothing | default(7) }}", None),
        ("{{ inputs.nothing | default(7, true) }}", 7),
        ("{{ nodes.skipped.output.a.b.c | default('none') }}", "none"),
        ("{{ nodes.skipped.output['a'][0] | default([]) }}", []),
        ("{{ nodes.nowhere.output.n | default(nodes.done.output.n) }}", 1),
        ("{{ nodes.skipped.output | default(nodes.nowhere.output) | default(5) }}", 5),
        ("{{ inputs.gone is defined }}", False),
        ("{{ inputs.gone.deeper is undefined }}", True),
        ("{{ inputs.count if inputs.gone is undefined else inputs.gone }}", 3),
        ("n={{ inputs.gone | default(none) }}", "n=null"),
    ],
)
def test_default_and_is_defined_ask_about_what_is_undefined(template: str, expected: Any) -> None:
    assert same(render(template), expected)


# Keys before attributes


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ odd.items }}", 1),
        ("{{ odd.items + 1 }}", 2),
        ("{{ odd['keys'] }}", 2),
        ("{{ odd['a b'] }}", 3),
        ("{{ [odd] | map(attribute='items') }}", [1]),
        ("{{ odd.values is defined }}", False),
        ("{{ odd.get | default('no') }}", "no"),
        ("{{ '{0.items}'.format(odd) }}", "1"),
    ],
)
def test_the_keys_of_a_mapping_are_all_there_is(template: str, expected: Any) -> None:
    assert same(render(template), expected)


@pytest.mark.parametrize("method", ["values", "update", "get", "pop", "copy"])
@pytest.mark.parametrize(
    "template", ["{{{{ odd.{} }}}}", "{{{{ odd.{}() }}}}", "{{{{ odd['{}'] }}}}", "x{{{{ odd.{} }}}}"]
)
def test_a_mapping_has_no_methods(method: str, template: str) -> None:
    with pytest.raises(ExpressionError, match=f"there is no '{method}'"):
        render(template.format(method))


# The fast path


NAMES = st.sampled_from(["a", "b", "items", "keys", "get", "update", "result", "x1", "_y", "class"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab07")
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@st.composite
def existing_paths(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    scope = draw(st.dictionaries(NAMES, DATA, min_size=1, max_size=3))
    source = draw(st.sampled_from(sorted(scope)))
    value = scope[source]
    while value and isinstance(value, dict | list) and draw(st.integers(0, 4)):
        if isinstance(value, dict):
            key: Any = draw(st.sampled_from(sorted(value)))
            source += draw(st.sampled_from([f".{key}", f"['{key}']", f'["{key}"]']))
        else:
            key = draw(st.integers(0, len(value) - 1))
            source += draw(st.sampled_from([f"[{key}]", f".{key}"]))
        value = value[key]
    return scope, source


@settings(max_examples=200, deadline=None)
@given(existing_paths())
def test_a_walked_path_gives_what_jinja_gives(case: tuple[dict[str, Any], str]) -> None:
    scope, source = case
    expected = environment().compile_expression(source, undefined_to_none=False)(scope)
    assert same(render("{{ " + source + " }}", scope), expected)
    assert same(render("{{ (" + source + ") | default(0) }}", scope), expected)
