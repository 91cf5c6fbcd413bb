"""Checks filters of features.

TiPG turns CQL2 into SQL, and any name with parentheses into a call of the database function with that name; some of
these read files or sleep. So only operators of the standard (`geomill.serve.filters`) and columns of the table are
allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from cql2 import Expr
from fastapi import Depends, Query

from geomill.errors import nearest
from geomill.serve.filters import read_filter, wrong_filter
from geomill.serve.vector.collections import TheCollection

TheText = Annotated[str | None, Query(alias="filter", description="CQL2")]
TheLanguage = Annotated[Literal["cql2-text", "cql2-json"] | None, Query(alias="filter-lang")]


async def checked_filter(collection: TheCollection, text: TheText = None, language: TheLanguage = None) -> Expr | None:
    """Read `filter` instead of TiPG."""
    del language  # the text itself shows its language
    if text is None:
        return None
    document = read_filter(text)
    columns = {column.name for column in collection.table_columns}
    for name in _properties(document):
        if name not in columns:
            raise wrong_filter(f"names '{name}', which is not a property of the collection; {nearest(name, columns)}")
    return _expression(document)


def _properties(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "property" in node:
            yield str(node["property"])
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from _properties(value)


def _expression(document: dict[str, Any]) -> Expr:
    """Return the expression, from which TiPG writes SQL. Refuses one that cannot be written as SQL."""
    try:
        expression = Expr(document)
        expression.to_sql()
    except Exception as error:  # noqa: BLE001  cql2 raises bare exceptions
        raise wrong_filter(f"is not CQL2: {str(error)[:200]}") from None
    return expression


TheFilter = Annotated[Expr | None, Depends(checked_filter)]
