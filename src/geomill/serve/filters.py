"""Reads CQL2 filters, as text or JSON, for the catalogue and for features.

Length, nesting and number of nodes are checked on the raw text before cql2 sees it. Without these checks a few
kilobytes can end the process: a long run of `-` overflows the parser's stack, and each group of parentheses doubles the
time for a text with a syntax error at its end. cql2's own validation is never called: it compiles its schema at each
call, which takes a tenth of a second and 100 MB, and gigabytes for nested filters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cql2 import Expr
from geojson_pydantic.geometries import parse_geometry_obj
from pydantic import ValidationError

from geomill.errors import InputError, Problem

LONGEST = 5_000
"""The maximum number of characters of a filter in a URL."""
LONGEST_JSON = 50_000
MOST_NODES = 1_000
"""The maximum number of names, values and operators."""
MOST_VALUES = 5_000
"""The maximum number of values of a JSON text, coordinates included."""
LARGEST_NUMBER = 1e300
DEEPEST = 16
"""The maximum depth of parentheses, and length of a run of `NOT` or `-`."""
DEEPEST_DOCUMENT = 50
"""The maximum depth of objects and lists. A sum of twenty values has forty levels."""
MOST_WORK = 60_000
"""An upper bound of the parser's work, about 50 ms: characters, doubled for each level of nested parentheses."""

CONDITIONS = frozenset({
    "and", "or", "not", "=", "<>", "<", ">", "<=", ">=", "isnull", "like", "between", "in",
    "s_contains", "s_crosses", "s_disjoint", "s_equals", "s_intersects", "s_overlaps", "s_touches", "s_within",
    "t_after", "t_before", "t_contains", "t_disjoint", "t_during", "t_equals", "t_finishedby", "t_finishes",
    "t_intersects", "t_meets", "t_metby", "t_overlappedby", "t_overlaps", "t_startedby", "t_starts",
    "a_containedby", "a_contains", "a_equals", "a_overlaps",
})  # fmt: skip
OPERATORS = CONDITIONS | {"+", "-", "*", "/", "^", "%", "div", "casei", "accenti"}

_TOKEN = re.compile(r"""'(?:[^']|'')*'?|"[^"]*"?|[\w.:]+|[^\s\w]""")
_WORDS = frozenset({"and", "or", "not", "in", "between", "like", "is", "div"})
"""A parenthesis after one of these words opens a group; after any other name, a call."""
_PREFIXES = frozenset({"not", "-", "+"})
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},]', re.DOTALL)


def read_filter(text: str) -> dict[str, Any]:
    """Return the condition as CQL2-JSON. Raises `InputError`."""
    _check_characters(text)
    if text.lstrip().startswith("{"):
        return checked(read_json(text, field="filter"))
    check_text(text)
    return checked(_from_text(text))


def checked(document: Any) -> dict[str, Any]:
    """Return the document if it is a condition within the limits. Raises `InputError`."""
    if not isinstance(document, dict) or str(document.get("op")).lower() not in CONDITIONS:
        raise wrong_filter("is not a CQL2 condition: its first operator must be a comparison, AND, OR or NOT")
    for node in _nodes(document):
        if isinstance(node, str):
            _check_characters(node)
        elif isinstance(node, float | int):
            _check_number(node)
        elif isinstance(node, dict):
            _check_object(node)
    return document


def check_text(text: str) -> None:
    """Check the limits. Reads each lexeme once and builds no tree."""
    if len(text) > LONGEST:
        raise wrong_filter(f"must have at most {LONGEST} characters, not {len(text)}")
    opened: list[bool] = []
    nodes = groups = most_groups = run = 0
    before = ""
    for lexeme in _TOKEN.findall(text):
        word = lexeme.lower()
        run = run + 1 if word in _PREFIXES else 0
        if lexeme == "(":
            opened.append(not _is_name(before))
            groups += opened[-1]
            most_groups = max(most_groups, groups)
        elif lexeme == ")" and opened:
            groups -= opened.pop()
        elif lexeme != ",":
            nodes += 1
        if len(opened) + run > DEEPEST:
            raise wrong_filter(f"must be at most {DEEPEST} levels deep")
        before = word
    if nodes > MOST_NODES:
        raise wrong_filter(f"must have at most {MOST_NODES} names, values and operators, not {nodes}")
    if opened:
        raise wrong_filter("has a parenthesis that is never closed")
    if len(text) << most_groups > MOST_WORK:
        raise wrong_filter(f"is too long for a text with {most_groups} nested groups of parentheses")


def read_json(text: str, *, field: str) -> Any:
    """Parse the JSON of a parameter. Raises `InputError`."""
    check_json(text, field=field)
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _wrong(field, f"is not JSON: {str(error)[:200]}") from None


def check_json(
    text: str, *, field: str, longest: int = LONGEST_JSON, most: int = MOST_VALUES, deepest: int = DEEPEST_DOCUMENT
) -> None:
    """Check the limits by counting brackets and commas, without parsing."""
    if len(text) > longest:
        raise _wrong(field, f"must have at most {longest} characters, not {len(text)}")
    depth = values = 0
    for lexeme in _JSON_TOKEN.findall(text):
        if lexeme in "[{":
            depth += 1
            if depth > deepest:
                raise _wrong(field, f"must be at most {deepest} levels deep")
        elif lexeme in "]}":
            depth -= 1
        values += lexeme in "[{,"
    if values > most:
        raise _wrong(field, f"must have at most {most} values, not {values}")


def wrong_filter(message: str) -> InputError:
    return _wrong("filter", message)


def _wrong(field: str, message: str) -> InputError:
    problem = Problem(field, message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])


def _is_name(lexeme: str) -> bool:
    return bool(lexeme) and (lexeme[-1].isalnum() or lexeme[-1] in '_"') and lexeme not in _WORDS


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _from_text(text: str) -> Any:
    try:
        return Expr(text).to_json()
    except BaseException as error:
        # cql2 raises bare exceptions, and its panics do not derive from Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise wrong_filter(f"is not CQL2: {str(error)[:200]}") from None


def _nodes(document: Any) -> Iterator[Any]:
    """Yield each object and value; a geometry is one value. Raises `InputError` if there are too many or too deep."""
    waiting = [(document, 1)]
    values = 0
    while waiting:
        node, depth = waiting.pop()
        yield node
        if depth > DEEPEST_DOCUMENT:
            raise wrong_filter(f"must be at most {DEEPEST_DOCUMENT} levels deep")
        if isinstance(node, dict | list) and not _is_geometry(node):
            waiting += [(child, depth + 1) for child in (node.values() if isinstance(node, dict) else node)]
        else:
            values += 1
            if values > MOST_NODES:
                raise wrong_filter(f"must have at most {MOST_NODES} names, values and operators")


def _is_geometry(node: object) -> bool:
    return isinstance(node, dict) and ("coordinates" in node or "geometries" in node)


def _check_characters(text: str) -> None:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise wrong_filter("has a character that no value can have: NUL or a lone surrogate")


def _check_number(number: float) -> None:
    if not -LARGEST_NUMBER < number < LARGEST_NUMBER:
        raise wrong_filter(f"has a number that is too large: {str(number)[:20]}")


def _check_object(node: dict[str, Any]) -> None:
    if "op" in node:
        _check_operator(node)
    elif "bbox" in node:
        node.update(_polygon(node.pop("bbox")))  # neither pgstac nor TiPG supports boxes
    elif _is_geometry(node):
        check_geometry(node, field="filter")


def _check_operator(node: dict[str, Any]) -> None:
    operator, arguments = node["op"], node.get("args")
    if not isinstance(operator, str) or operator.lower() not in OPERATORS:
        raise wrong_filter(f"has '{str(operator)[:50]}', which is not a CQL2 operator")
    if not isinstance(arguments, list) or not arguments:
        raise wrong_filter(f"must give the operator '{operator}' a list of arguments")


def _polygon(box: Any) -> dict[str, Any]:
    if not isinstance(box, list) or len(box) not in (4, 6) or not all(_is_number(corner) for corner in box):
        raise wrong_filter("has a BBOX that is not four or six numbers")
    half = len(box) // 2
    (west, south), (east, north) = box[:2], box[half : half + 2]
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def check_geometry(node: Any, *, field: str) -> None:
    """Raise `InputError` if the node is not a GeoJSON geometry with finite coordinates."""
    check_finite(node, field=field)
    try:
        parse_geometry_obj(node)
    except (ValueError, TypeError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise _wrong(field, f"has an invalid geometry: {reason[:200]}") from None


def check_finite(document: Any, *, field: str) -> None:
    """Raise `InputError` for NaN and infinity. A number such as 1e400 becomes infinity."""
    try:
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError):
        raise _wrong(field, "must have only finite numbers") from None
