"""The branch conditions of a conditional node: `< 100`, `== 'x'`, `in ['a', 'b']`, `matches '^[0-9]+$'`, `is true`."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geomill.errors import ExpressionError

_SYNTAX = re.compile(
    r"^\s*(<=|>=|==|!=|<|>|not\s+in\b|in\b|contains\b|matches\b|is\s+not\b|is\b)\s*(.+?)\s*$", re.DOTALL
)
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_BARE = re.compile(r"^[A-Za-z_][\w.:/-]*$")
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")  # a pattern keeps its backslashes
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LONGEST_MATCHED = 10_000
"""Regular expressions see only so many characters of a value."""


@dataclass(frozen=True, slots=True)
class Condition:
    source: str
    _test: Callable[[Any], bool]

    def holds(self, value: Any) -> bool:
        """Whether the condition is true for the value. Raises `ExpressionError` if they cannot be compared."""
        return self._test(value)


def parse_condition(source: str) -> Condition:
    match = _SYNTAX.match(source)
    if not match:
        raise ExpressionError(
            f"the condition {source!r} cannot be read",
            remedy='write an operator and a value, such as "< 100", "== \'x\'", "in [\'a\', \'b\']" or "is true"',
        )
    word, text = " ".join(match[1].split()), match[2]
    return Condition(source, _build(source, word, text))


def _build(source: str, word: str, text: str) -> Callable[[Any], bool]:
    if word in _ORDER:
        return _ordered(source, _ORDER[word], _literal(source, text))
    if word in ("==", "!=", "is", "is not"):
        expected, positive = _literal(source, text), word in ("==", "is")
        return lambda value: _same(value, expected) is positive
    if word in ("in", "not in"):
        return _member(source, _literal(source, text), positive=word == "in")
    if word == "contains":
        return _contains(source, _literal(source, text))
    quoted = _QUOTED.fullmatch(text)
    return _matches(source, text[1:-1] if quoted else _literal(source, text))


def _literal(source: str, text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _BARE.match(text):
        return text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # 'C:\\data' is valid text
            return _json_words(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ExpressionError(
            f"in the condition {source!r}, {text!r} is not a value", remedy="put text in quotes and lists in brackets"
        ) from error


def _json_words(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set) else value


def _same(left: Any, right: Any) -> bool:
    """Equality without Python's True == 1."""
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(source: str, compare: Callable[[Any, Any], bool], bound: Any) -> Callable[[Any], bool]:
    if not _number(bound) and not isinstance(bound, str):
        raise ExpressionError(f"the condition {source!r} needs a number or a text to compare with")

    def test(value: Any) -> bool:
        if (_number(value) and _number(bound)) or (isinstance(value, str) and isinstance(bound, str)):
            return compare(value, bound)
        raise _unfit(source, value)

    return test


def _member(source: str, allowed: Any, *, positive: bool) -> Callable[[Any], bool]:
    if not isinstance(allowed, list):
        raise ExpressionError(f"the condition {source!r} needs a list", remedy="write, for example, \"in ['a', 'b']\"")
    return lambda value: any(_same(value, item) for item in allowed) is positive


def _contains(source: str, expected: Any) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(expected, str) and expected in value
        if isinstance(value, dict):
            return isinstance(expected, str) and expected in value
        if isinstance(value, list):
            return any(_same(item, expected) for item in value)
        raise _unfit(source, value)

    return test


def _matches(source: str, pattern: Any) -> Callable[[Any], bool]:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise ExpressionError(
            f"in the condition {source!r}, the pattern is not a regular expression: {error}"
        ) from error

    def test(value: Any) -> bool:
        if not isinstance(value, str):
            raise _unfit(source, value)
        return compiled.search(value[:LONGEST_MATCHED]) is not None

    return test


def _unfit(source: str, value: Any) -> ExpressionError:
    shown = f"{str(value)[:80]!r}, a {type(value).__name__}"
    return ExpressionError(f"the condition {source!r} cannot be applied to {shown}")
