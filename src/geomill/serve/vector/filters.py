"""What a filter may say.

TiPG turns CQL2 into SQL, and any name with parentheses into a call of the database's function of that name: some of
those read files or sleep. So only the operators of the standard pass, and only columns of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

from cql2 import Expr
from fastapi import Depends, Query

from geomill.errors import InputError, Problem, nearest
from geomill.serve.vector.collections import TheCollection

LONGEST = 5_000
DEEPEST = 50
DEEPEST_TEXT = 8
"""Of parentheses. The parser needs twice the time for each level of a text that ends wrongly."""
OPERATORS = frozenset({
    "and", "or", "not", "=", "<>", "<", ">", "<=", ">=", "isnull", "like", "between", "in",
    "+", "-", "*", "/", "^", "%", "div", "casei", "accenti",
    "s_contains", "s_crosses", "s_disjoint", "s_equals", "s_intersects", "s_overlaps", "s_touches", "s_within",
    "t_after", "t_before", "t_contains", "t_disjoint", "t_during", "t_equals", "t_finishedby", "t_finishes",
    "t_intersects", "t_meets", "t_metby", "t_overlappedby", "t_overlaps", "t_startedby", "t_starts",
    "a_containedby", "a_contains", "a_equals", "a_overlaps",
})  # fmt: skip

TheText = Annotated[str | None, Query(alias="filter", description="CQL2", max_length=LONGEST)]
TheLanguage = Annotated[Literal["cql2-text", "cql2-json"] | None, Query(alias="filter-lang")]


async def checked_filter(collection: TheCollection, text: TheText = None, language: TheLanguage = None) -> Expr | None:
    """Takes the place of TiPG's own reading of `filter`."""
    del language  # the text tells
    if text is None:
        return None
    if not text.lstrip().startswith("{") and _depth(text) > DEEPEST_TEXT:
        raise _wrong(f"has more than {DEEPEST_TEXT} parentheses in each other, or leaves them open")
    try:
        document = Expr(text).to_json()
    except Exception as error:  # noqa: BLE001  cql2 raises what its parser finds, in classes of its own
        raise _wrong(f"is not CQL2: {str(error)[:200]}") from None
    columns = {column.name for column in collection.table_columns}
    for problem in _problems(document, columns):
        raise _wrong(problem)
    return Expr(document)


def _depth(text: str) -> int:
    """Those in quotes count too: nobody needs that many."""
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest if depth <= 0 else max(deepest, DEEPEST_TEXT + 1)


def _problems(node: Any, columns: Collection[str], depth: int = 0) -> Iterator[str]:
    if depth > DEEPEST:
        yield f"is deeper than {DEEPEST} levels"
    elif isinstance(node, dict):
        if "op" in node and str(node["op"]).lower() not in OPERATORS:
            yield f"has '{node['op']}', which is no operator of CQL2"
        if "property" in node and node["property"] not in columns:
            hint = nearest(str(node["property"]), columns)
            yield f"names '{node['property']}', which is no property of the collection; {hint}"
        for value in node.values():
            yield from _problems(value, columns, depth + 1)
    elif isinstance(node, list):
        for value in node:
            yield from _problems(value, columns, depth + 1)


def _wrong(message: str) -> InputError:
    problem = Problem("filter", message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])


TheFilter = Annotated[Expr | None, Depends(checked_filter)]
