"""stac-fastapi's client for pgstac, with our rule in each of its queries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from stac_fastapi.pgstac.core import CoreCrudClient, clean_collection_search_args
from stac_fastapi.pgstac.extensions.filter import FiltersClient
from stac_fastapi.pgstac.models.links import CollectionLinks, CollectionSearchPagingLinks, ItemLinks, PagingLinks
from stac_fastapi.pgstac.types.search import PgstacSearch
from stac_fastapi.pgstac.utils import filter_fields
from stac_fastapi.types.errors import InvalidQueryParameter, NotFoundError
from stac_fastapi.types.requests import get_base_url

from geomill.domain.access.visibility import Sight
from geomill.serve.filters import check_finite, checked, read_filter, read_json
from geomill.serve.stac.fields import Chosen, chosen
from geomill.serve.stac.requests import check_body, check_box, check_query, check_sizes, without_empty
from geomill.serve.stac.sessions import fetch_value, sight_of
from geomill.sql import queries

_TOKEN = re.compile(r"(next|prev):((?:[0-9a-f]{2})+):((?:[0-9a-f]{2})+)", re.IGNORECASE)
GONE = "the token is not one of this search, or its item is gone: begin again without it"


class PagePlace(NamedTuple):
    """Where a page begins, or ends: at an item, by collection and id."""

    item: list[str]
    backwards: bool


class CatalogueClient(CoreCrudClient):  # type: ignore[misc]  # it has no types
    """Items and collections that the caller may see; the others do not exist."""

    async def _search_base(self, search_request: PgstacSearch, request: Request, *, counted: bool = True) -> Any:
        """In place of pgstac's own search stands ours, which knows who asks."""
        fields = chosen(search_request, by_post=request.method == "POST")
        check_sizes(fields=[*fields.included, *fields.excluded])
        found = await _items(request, search_request, counted=counted)
        links = PagingLinks(request=request, next=found["next"], prev=found["prev"])
        return {
            "type": "FeatureCollection",
            "features": [await _shown(item, request, fields) for item in found["features"]],
            "links": await links.get_links(),
            "numberReturned": len(found["features"]),
            **({"numberMatched": found["numberMatched"]} if counted else {}),
        }

    def _clean_search_args(self, base_args: dict[str, Any], *arguments: Any, **named: Any) -> dict[str, Any]:
        """stac-fastapi would parse the filter and the geometry without any limit."""
        condition, _language = named.pop("filter_query", None), named.pop("filter_lang", None)
        shape = named.pop("intersects", None)
        wanted: dict[str, Any] = super()._clean_search_args(base_args, *arguments, **named)
        if condition:
            wanted.update({"filter": read_filter(condition), "filter_lang": "cql2-json"})
        if shape:
            wanted["intersects"] = read_json(shape, field="intersects")
        return wanted

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
        wanted = self.pgstac_search_model(ids=[item_id], collections=[collection_id], limit=1)
        found = await self._search_base(wanted, request, counted=False)
        if not found["features"]:
            raise NotFoundError(f"Item {item_id} in Collection {collection_id} does not exist.")
        return found["features"][0]

    async def get_collection(self, collection_id: str, request: Request, **_more: Any) -> Any:
        found = await _collections(request, {"ids": [collection_id], "limit": 1})
        if not found["collections"]:
            raise NotFoundError(f"Collection {collection_id} does not exist.")
        return await _linked(found["collections"][0], request)

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
        del filter_lang  # the text tells
        check_query(request)
        check_box(bbox)
        fields, sortby = without_empty(fields), without_empty(sortby)
        check_sizes(fields=fields, sortby=sortby, q=kwargs.get("q"))
        wanted = clean_collection_search_args(
            {"bbox": _flat(bbox), "limit": limit, "offset": offset},
            datetime=datetime,
            fields=fields,
            sortby=sortby,
            q=kwargs.get("q"),
        )
        if filter_expr:
            wanted["filter"], wanted["filter-lang"] = read_filter(filter_expr), "cql2-json"
        found = await _collections(request, wanted)
        shown, matched = found["collections"], found["numberMatched"]
        start, size = found["offset"], found["limit"]
        links = CollectionSearchPagingLinks(
            request=request,
            next={"body": {"offset": start + size}} if start + size < matched else None,
            prev={"body": {"offset": max(min(start, matched) - size, 0)}} if start else None,
        )
        answer = {
            "collections": [await _linked(one, request) if "id" in one else one for one in shown],
            "links": await links.get_links(),
            "numberMatched": matched,
            "numberReturned": len(shown),
        }
        return JSONResponse(answer) if fields else answer


class CatalogueFilters(FiltersClient):  # type: ignore[misc]  # it has no types
    """Properties by which items can be found. They are the same for all, so they tell nothing of a collection, except
    that it is there."""

    async def get_queryables(self, request: Request, collection_id: str | None = None, **kwargs: Any) -> Any:
        if collection_id is not None:
            found = await _collections(request, {"ids": [collection_id], "limit": 1})
            if not found["collections"]:
                raise NotFoundError(f"Collection {collection_id} does not exist.")
        return await super().get_queryables(request, collection_id, **kwargs)


def _without_empty(named: dict[str, Any]) -> dict[str, Any]:
    return {**named, **{name: without_empty(named[name]) for name in ("fields", "sortby") if name in named}}


def _geojson(answer: Any) -> Any:
    """Answers with chosen fields are made by stac-fastapi as plain JSON."""
    if isinstance(answer, Response):
        answer.headers["Content-Type"] = "application/geo+json"
    return answer


async def _items(request: Request, wanted: PgstacSearch, *, counted: bool) -> dict[str, Any]:
    sight, place = sight_of(request), _place(getattr(wanted, "token", None))
    wanted.bbox = _flat(wanted.bbox)
    check_sizes(ids=wanted.ids, collections=wanted.collections, sortby=getattr(wanted, "sortby", None))
    check_box(wanted.bbox)
    if wanted.intersects:
        check_finite(wanted.intersects.model_dump(), field="intersects")
    if condition := getattr(wanted, "filter_expr", None):
        checked(condition)
    search = wanted.model_dump(mode="json", exclude_none=True, by_alias=True, exclude={"conf", "token", "fields"})
    if not counted:
        search["uncounted"] = True
    found: dict[str, Any] | None = await fetch_value(
        request,
        queries("stac").search,
        json.dumps(search),
        sight.everything,
        sight.platform_id,
        sight.asset_id,
        place.item if place else None,
        bool(place and place.backwards),
    )
    if found is None:
        raise InvalidQueryParameter(GONE)
    return found


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
    """With the fields that are asked for. Places of files become addresses; links to older revisions are for those who
    may see them."""
    base = get_base_url(request)
    names = {"collection_id": item["collection"], "item_id": item["id"]}
    history = _sees_history(item, sight_of(request))
    shown: dict[str, Any] = filter_fields(item, set(fields.included), set(fields.excluded))
    for asset in (shown.get("assets") or {}).values():
        if "href" in asset:
            asset["href"] = address(base, asset["href"])
    if "links" not in fields.excluded:
        known = [link for link in shown.get("links", ()) if history or link["rel"] != "predecessor-version"]
        shown["links"] = await ItemLinks(request=request, **names).get_links(extra_links=known)
    return shown


def _flat(bbox: Any) -> Any:
    """Without heights, which our items do not have and PostGIS stumbles over."""
    return (bbox[0], bbox[1], bbox[3], bbox[4]) if bbox and len(bbox) == 6 else bbox


def address(base: str, href: str) -> str:
    """Of something beside the STAC API, when it begins with a slash; else below it."""
    return urljoin(base, f"..{href}" if href.startswith("/") else href)


def _sees_history(item: Mapping[str, Any], sight: Sight) -> bool:
    return sight.covers((item.get("properties") or {}).get("geomill:platform"))


async def _collections(request: Request, wanted: dict[str, Any]) -> dict[str, Any]:
    sight = sight_of(request)
    found: dict[str, Any] = await fetch_value(
        request, queries("stac").collections, json.dumps(wanted), sight.everything, sight.platform_id
    )
    return found


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
