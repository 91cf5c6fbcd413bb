"""YAML as data with lines: what is read, what is refused, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geomill.errors import WorkflowError
from geomill.workflows import yaml_source
from geomill.workflows.yaml_source import read_yaml

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(params=["libyaml", "python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(yaml_source, "_LOADER", yaml.SafeLoader)


def refused(source: str | bytes) -> tuple[int, str]:
    with pytest.raises(WorkflowError) as caught:
        read_yaml(source, file="f.yaml")
    problem = caught.value.problems[0]
    assert problem.file == "f.yaml"
    return problem.line, str(problem)


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("5", 5),
        ("-5", -5),
        ("010", 10),
        ("0x1f", 31),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("12:30:00", "12:30:00"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.2.3", "1.2.3"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("EPSG:3857", "EPSG:3857"),
        ("=", "="),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    scalar = read_yaml(f"x: {text}", file="f").value["x"]
    assert scalar == value
    assert type(scalar) is type(value)


def test_keys_are_text() -> None:
    assert read_yaml("on: 1\n5: 2\nnull: 3\ntrue: 4", file="f").value == {"on": 1, "5": 2, "null": 3, "true": 4}


@pytest.mark.usefixtures("_parser")
def test_lines() -> None:
    document = read_yaml("# one\na:\n  b: 1\n  c:\n    - x\n    - y: 2\n      z: 3\nd: {e: 4,\n  f: 5}\n", file="f")
    lines = {("a",): 2, ("a", "b"): 3, ("a", "c"): 4, ("a", "c", 0): 5, ("a", "c", 1): 6, ("a", "c", 1, "z"): 7}
    assert {path: document.line_of(path) for path in lines} == lines
    assert document.line_of(("d", "f")) == 9
    assert document.line_of(("a", "c", 7, "nowhere")) == 4
    assert document.line_of(("nowhere",)) == 1


def test_aliases_repeat_and_keep_their_own_line() -> None:
    document = read_yaml("a: &x {k: [1]}\nb: *x\nc: &y text\nd: *y", file="f")
    assert document.value == {"a": {"k": [1]}, "b": {"k": [1]}, "c": "text", "d": "text"}
    assert document.line_of(("b", "k")) == 2


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("# only a comment", 1, "the file is empty"),
        ("- a\n- b", 1, "the file holds a list"),
        ("text", 1, "the file holds a str"),
        ("a: 1\nb: 2\na: 3", 3, "a: the key 'a' is given twice (first on line 1)"),
        ("x:\n  a: 1\n  'a': 2", 3, "x.a: the key 'a' is given twice (first on line 2)"),
        ("a: 1\n\tb: 2", 2, "indent with spaces, not with tabs"),
        ("a: [1, 2", 1, "the YAML cannot be read"),
        ("a: 1\nb: 'x", 2, "the YAML cannot be read"),
        ("a: 1\nb: {{ x }}", 2, "a key must be text"),
        ("a: 1\n? [x]\n: 2", 2, "a key must be text"),
        ("a: &x 1\n*x : 2", 2, "a key must be text"),
        ("a: 1\nb: &x\n  - *x", 3, "the alias '*x' is inside the value that it repeats"),
        ("a: 1\nb: *x", 2, "the alias '*x' has no anchor '&x' before it"),
        ("a: 1\n---\nb: 2", 2, "there is a second document"),
        ("a: 1\nb: !!python/object:os.system x", 2, "is not supported"),
        ("a: 1\nb: !thing {}", 2, "is not supported"),
        ("a: &x {k: 1}\nb:\n  <<: *x", 3, "merge keys are not supported"),
        ("a: 1\nb: .inf", 2, "b: .inf is not a JSON number"),
        ("a: .NaN", 1, "a: .NaN is not a JSON number"),
        ("a: 1e999", 1, "a: 1e999 is not a JSON number"),
        ("a: " + "9" * 5000, 1, "a: the number has too many digits"),
        ('a: 1\nb: "\\0"', 2, "b: the text has a NUL character"),
        ('a: 1\n"b\\0": 1', 2, "the text has a NUL character"),
        ("a: 1\nb: \x01", 2, "not allowed"),
        (b"a: 1\nb: \xff", 2, "the byte 0xff is not UTF-8 (save the file as UTF-8)"),
        ("a: \ud800", 1, "is not UTF-8"),
        ("a: 1\nb: " + "[" * 100_000, 2, "nested deeper than 64 levels"),
        ("a:\n" + "".join(" " * n + "- \n" for n in range(1, 3)) + "b: " + "{a: " * 70, 4, "nested deeper"),
        ("a: " + "x" * 5_000_001, 1, "the file has more than 5,000,000 bytes"),
    ],
)
def test_what_is_refused(source: str | bytes, line: int, message: str) -> None:
    refusal = refused(source)
    assert message in refusal[1]
    assert refusal[0] == line


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    line, message = refused("\n".join(lines))
    assert "more than 500,000 values, aliases included" in message
    assert line == 6


def test_every_problem_of_the_text_is_told() -> None:
    with pytest.raises(WorkflowError) as caught:
        read_yaml("a: 1\na: 2\nb: .inf\nc: !x 1", file="f.yaml")
    assert caught.value.message == "f.yaml has 3 problems"
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]


def test_a_byte_order_mark_is_ignored() -> None:
    assert read_yaml(b"\xef\xbb\xbfa: 1", file="f").value == {"a": 1}


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=50)
VALUES = st.recursive(
    SCALARS | TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=15
)


@patient
@given(st.dictionaries(TEXT, VALUES))
def test_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert read_yaml(json.dumps(value, ensure_ascii=False), file="f").value == value


@patient
@given(st.text() | st.text("ab:-[]{}&*!|>'\"#%@` \n\t,?<~0.") | st.binary())
def test_any_text_is_read_or_refused(source: str | bytes) -> None:
    try:
        document = read_yaml(source, file="f")
    except WorkflowError as error:
        lines = [problem.line for problem in error.problems]
        last = len(source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")) + 1
        ok = lines and all(1 <= line <= last for line in lines)
    else:
        ok = isinstance(document.value, dict)
    assert ok
