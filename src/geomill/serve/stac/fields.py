"""The fields extension: which fields of an item a search asks for."""

from __future__ import annotations

from typing import NamedTuple

from stac_fastapi.pgstac.types.search import PgstacSearch
from stac_fastapi.types.errors import InvalidQueryParameter

DEFAULT = frozenset(
    {
        "type",
        "stac_version",
        "id",
        "collection",
        "geometry",
        "bbox",
        "links",
        "assets",
        "properties.datetime",
        "properties.start_datetime",
        "properties.end_datetime",
    }
)
"""The fields of a valid item, which an empty `include` stands for."""


class Chosen(NamedTuple):
    """Selected fields. An empty `included` means all fields."""

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()


def chosen(search: PgstacSearch, *, by_post: bool) -> Chosen:
    """Return the fields of a search. In a body, an empty `include` means the default fields and a missing one means
    all. A URL cannot contain an empty `include`."""
    fields = getattr(search, "fields", None)
    explicit = by_post and "fields" in search.model_fields_set
    if fields is None:
        if explicit:
            raise InvalidQueryParameter("fields must not be null; give an object, or omit it to get all fields")
        return Chosen()
    included, excluded = frozenset(fields.include or ()), frozenset(fields.exclude or ())
    if explicit and not included and (not excluded or "include" in fields.model_fields_set):
        included = DEFAULT
    return Chosen(included, excluded)
