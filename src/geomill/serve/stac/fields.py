"""Which fields of an item a search asks for, as the fields extension has it."""

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
"""Of who names no field: what makes a valid item."""


class Chosen(NamedTuple):
    """Nothing included: everything is."""

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()


def chosen(search: PgstacSearch, *, by_post: bool) -> Chosen:
    """An `include` that is said and empty stands for the default fields; one that is not said for all of them. In an
    address nothing empty can be said."""
    fields = getattr(search, "fields", None)
    said = by_post and "fields" in search.model_fields_set
    if fields is None:
        if said:
            raise InvalidQueryParameter("fields: null is no choice; give an object, or leave it out for all fields")
        return Chosen()
    included, excluded = frozenset(fields.include or ()), frozenset(fields.exclude or ())
    if said and not included and (not excluded or "include" in fields.model_fields_set):
        included = DEFAULT
    return Chosen(included, excluded)
