"""stac-fastapi's client for pgstac, with geomill's visibility rule in each query."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

import asyncpg
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from stac_fastapi.pgstac.core import CoreCrudClient, clean_collection_search_args
from stac_fastapi.pgstac.extensions.filter import FiltersClient
from stac_fastapi.pgstac.models.links import CollectionLinks, CollectionSearchPagingLinks, ItemLinks, PagingLinks
from stac_fastapi.pgstac.types.search import PgstacSearch
from stac_fastapi.pgstac.utils import filter_fields
from stac_fastapi.types.errors import InvalidQueryParameter, NotFoundError
from stac_fastapi.types.requests import get_base_url

from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.access.visibility import Sight
from geomill.serve.filters import check_finite, checked, read_filter, read_json
from geomill.serve.stac.boxes import with_turned_box
from geomill.serve.stac.fields import Chosen, chosen
from geomill.serve.stac.requests import check_body, check_box, check_query, check_sizes, without_empty
from geomill.serve.stac.sessions import fetch_value, sight_of
from geomill.sql import queries

_TOKEN = re.compile(r"(next|prev):((?:[0-9a-f]{2})+):((?:[0-9a-f]{2})+)", re.IGNORECASE)
GONE = "the token does not belong to this search, or its item no longer exists: begin again without a token"


class PagePlace(NamedTuple):
    """The item, by collection and id, at which a page begins or ends."""

    item: list[str]
    backwards: bool


class CatalogueClient(CoreCrudClient):  # type: ignore[misc]  # it has no types
    """Items and collections that the caller may see. Others do not exist for the caller."""

    async def _search_base(self, search_request: PgstacSearch, request: Request, *, counted: bool = True) -> Any:
        """Run geomill's search, which applies the caller's sight, instead of pgstac's."""
        fields = chosen(search_request, by_post=request.method == "POST")
        check_sizes(fields=[*fields.included, *fields.excluded])
        page = await _items(request, search_request, counted=counted)
        links = PagingLinks(request=request, next=page["next"], prev=page["prev"])
        return {
            "type": "FeatureCollection",
            "features": [await _shown(item, request, fields) for item in page["features"]],
            "links": await links.get_links(),
            "numberReturned": len(page["features"]),
            **({"numberMatched": page["numberMatched"]} if counted else {}),
        }

    def _clean_search_args(self, base_args: dict[str, Any], *arguments: Any, **named: Any) -> dict[str, Any]:
        """Parse the filter and the geometry with limits, which stac-fastapi does not have."""
        condition, _language = named.pop("filter_query", None), named.pop("filter_lang", None)
        shape = named.pop("intersects", None)
        search: dict[str, Any] = super()._clean_search_args(base_args, *arguments, **named)
        if condition:
            search.update({"filter": read_filter(condition), "filter_lang": "cql2-json"})
        if shape:
            search["intersects"] = read_json(shape, field="intersects")
        return search

    async def get_search(self, *arguments: Any, request: Request, **named: Any) -> Any:
        check_query(request)
        return _geojson(await super().get_search(*arguments, request=request, **_without_empty(named)))

    async def post_search(self, search_request: PgstacSearch, request: Request, **named: Any) -> Any:
        await check_body(request, type(search_request))
        return _geojson(await super().post_search(search_request, request, **named))

    async def item_collection(self, *arguments: Any, request: Request, **named: Any) -> Any:
        check_query(request)
        return _geojson(await super().item_collection(*arguments, request=request, **_without_empty(named)))

    async def get_item(self, item_id: str, collection_id: str, request: Request, **_more: Any) -> Any:
        search = self.pgstac_search_model(ids=[item_id], collections=[collection_id], limit=1)
        page = await self._search_base(search, request, counted=False)
        if not page["features"]:
            raise NotFoundError(f"Item {item_id} in Collection {collection_id} does not exist.")
        return page["features"][0]

    async def get_collection(self, collection_id: str, request: Request, **_more: Any) -> Any:
        page = await _collections(request, {"ids": [collection_id], "limit": 1})
        if not page["collections"]:
            raise NotFoundError(f"Collection {collection_id} does not exist.")
        return await _linked(page["collections"][0], request)

    async def all_collections(
        self,
        request: Request,
        bbox: Any = None,
        datetime: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        fields: list[str] | None = None,
        sortby: list[str] | None = None,
        filter_expr: str | None = None,
        filter_lang: str | None = None,
        **kwargs: Any,
    ) -> Any:
        del filter_lang  # the text itself shows its language
        check_query(request)
        check_box(bbox)
        fields, sortby = without_empty(fields), without_empty(sortby)
        check_sizes(fields=fields, sortby=sortby, q=kwargs.get("q"))
        search = clean_collection_search_args(
            {"bbox": _flat(bbox), "limit": limit, "offset": offset},
            datetime=datetime,
            fields=fields,
            sortby=sortby,
            q=kwargs.get("q"),
        )
        if filter_expr:
            search["filter"], search["filter-lang"] = read_filter(filter_expr), "cql2-json"
        page = await _collections(request, search)
        shown, matched = page["collections"], page["numberMatched"]
        start, size = page["offset"], page["limit"]
        links = CollectionSearchPagingLinks(
            request=request,
            next={"body": {"offset": start + size}} if start + size < matched else None,
            prev={"body": {"offset": max(min(start, matched) - size, 0)}} if start else None,
        )
        answer = {
            "collections": [await _linked(document, request) if "id" in document else document for document in shown],
            "links": await links.get_links(),
            "numberMatched": matched,
            "numberReturned": len(shown),
        }
        return JSONResponse(answer) if fields else answer


class CatalogueFilters(FiltersClient):  # type: ignore[misc]  # it has no types
    """Properties by which items can be found. They are the same for all collections, so they reveal only that a
    collection exists."""

    async def get_queryables(self, request: Request, collection_id: str | None = None, **kwargs: Any) -> Any:
        if collection_id is not None:
            page = await _collections(request, {"ids": [collection_id], "limit": 1})
            if not page["collections"]:
                raise NotFoundError(f"Collection {collection_id} does not exist.")
        return await super().get_queryables(request, collection_id, **kwargs)


def _without_empty(named: dict[str, Any]) -> dict[str, Any]:
    return {**named, **{name: without_empty(named[name]) for name in ("fields", "sortby") if name in named}}


def _geojson(answer: Any) -> Any:
    """Set the GeoJSON media type. stac-fastapi returns answers with selected fields as plain JSON."""
    if isinstance(answer, Response):
        answer.headers["Content-Type"] = "application/geo+json"
    return answer


async def _items(request: Request, search: PgstacSearch, *, counted: bool) -> dict[str, Any]:
    sight, place = sight_of(request), _place(getattr(search, "token", None))
    search.bbox = _flat(search.bbox)
    check_sizes(ids=search.ids, collections=search.collections, sortby=getattr(search, "sortby", None))
    check_box(search.bbox)
    if search.intersects:
        check_finite(search.intersects.model_dump(), field="intersects")
    if condition := getattr(search, "filter_expr", None):
        checked(condition)
    document = search.model_dump(mode="json", exclude_none=True, by_alias=True, exclude={"conf", "token", "fields"})
    if not counted:
        document["uncounted"] = True
    place_in_page = (place.item if place else None, bool(place and place.backwards))
    viewer = (sight.everything, sight.platform_id, sight.asset_id)

    async def find(query: dict[str, Any]) -> dict[str, Any] | None:
        page: dict[str, Any] | None = await fetch_value(
            request, queries("stac").search, json.dumps(query), *viewer, *place_in_page
        )
        return page

    document = with_turned_box(document)
    try:
        page = await find(document)
    except asyncpg.InternalServerError:  # from PostGIS, about an invalid geometry: of the caller, or of an item
        page = await find({**document, "repaired": True})
    if page is None:
        raise InvalidQueryParameter(GONE)
    return page


def _place(token: str | None) -> PagePlace | None:
    if not token:
        return None
    match = _TOKEN.fullmatch(token)
    try:
        if match:
            item = [bytes.fromhex(part).decode() for part in match.groups()[1:]]
            return PagePlace(item, match[1].lower() == "prev")
    except UnicodeDecodeError:
        pass
    raise InvalidQueryParameter(GONE)


async def _shown(item: dict[str, Any], request: Request, fields: Chosen) -> dict[str, Any]:
    """Return the item with the selected fields. Paths of files become URLs. Links to older revisions are only for
    callers who may see them."""
    base = get_base_url(request)
    names = {"collection_id": item["collection"], "item_id": item["id"]}
    history = _sees_history(item, sight_of(request))
    shown: dict[str, Any] = filter_fields(item, set(fields.included), set(fields.excluded))
    ticket = _ticket(request, item)
    for asset in (shown.get("assets") or {}).values():
        if "href" in asset:
            asset["href"] = with_ticket(address(base, asset["href"]), ticket)
    if "links" not in fields.excluded:
        own_links = [
            {**link, "href": with_ticket(link["href"], ticket)}
            for link in shown.get("links", ())
            if history or link["rel"] != "predecessor-version"
        ]
        shown["links"] = await ItemLinks(request=request, **names).get_links(extra_links=own_links)
    return shown


def _ticket(request: Request, item: Mapping[str, Any]) -> str:
    """Return the ticket of the request, if it is for the asset of this item."""
    asset_id = (item.get("properties") or {}).get("geomill:asset_id")
    opened = getattr(getattr(request.state, "sight", None), "asset_id", None)
    return request.query_params.get(PARAMETER, "") if opened is not None and opened == asset_id else ""


def with_ticket(href: str, ticket: str) -> str:
    return f"{href}{'&' if '?' in href else '?'}{PARAMETER}={ticket}" if ticket else href


def _flat(bbox: Any) -> Any:
    """Return the box without heights, which items do not have and PostGIS does not handle."""
    return (bbox[0], bbox[1], bbox[3], bbox[4]) if bbox and len(bbox) == 6 else bbox


def address(base: str, href: str) -> str:
    """Return the URL of an href. With a leading slash it is relative to the parent of the STAC API, else to the STAC
    API."""
    return urljoin(base, f"..{href}" if href.startswith("/") else href)


def _sees_history(item: Mapping[str, Any], sight: Sight) -> bool:
    return sight.covers((item.get("properties") or {}).get("geomill:platform"))


async def _collections(request: Request, search: dict[str, Any]) -> dict[str, Any]:
    sight = sight_of(request)
    page: dict[str, Any] = await fetch_value(
        request, queries("stac").collections, json.dumps(search), sight.everything, sight.platform_id
    )
    return page


async def _linked(collection: dict[str, Any], request: Request) -> dict[str, Any]:
    name = collection["id"]
    links = await CollectionLinks(collection_id=name, request=request).get_links(extra_links=collection.get("links"))
    queryables = {
        "rel": "http://www.opengis.net/def/rel/ogc/1.0/queryables",
        "type": "application/schema+json",
        "title": "Queryables",
        "href": urljoin(get_base_url(request), f"collections/{name}/queryables"),
    }
    return {**collection, "links": [*links, queryables]}
