"""Adds to TiPG's documents of collections the reference systems (OGC API Features, part 2) and, in lists, the
titles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, cast

import orjson
from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from tipg import model
from tipg.collections import CollectionList
from tipg.dependencies import OutputType
from tipg.factory import OGCFeaturesFactory
from tipg.resources.enums import MediaType
from tipg.resources.response import ORJSONResponse

from geomill.serve.quick import on_the_loop
from geomill.serve.vector.collections import AssetLayer, TheCollection, collections
from geomill.serve.vector.crs import CONFORMANCE, EVERYWHERE

GLOBAL = "#/crs"
"""Refers to the systems that a list names for all its collections."""
TheCollections = Annotated[CollectionList, Depends(collections)]
TheOutput = Annotated[MediaType | None, Depends(on_the_loop(OutputType))]


class CollectionDocument(model.Collection):
    storageCrs: str | None = None  # noqa: N815  the name in the standard
    keywords: list[str] | None = None
    attribution: str | None = None


class CollectionsDocument(model.Collections):
    crs: list[str]
    collections: list[CollectionDocument]  # type: ignore[assignment]  # a list of a subclass


class Features(OGCFeaturesFactory):
    @property
    def conforms_to(self) -> list[str]:
        return [*super().conforms_to, CONFORMANCE]

    def _collections_route(self) -> None:
        super()._collections_route()  # type: ignore[no-untyped-call]
        endpoint_of_tipg = self._pop_endpoint()

        async def collections(request: Request, collection_list: TheCollections, output_type: TheOutput = None) -> Any:
            """List of collections."""
            document = _read(endpoint_of_tipg(request, collection_list))
            document["crs"] = EVERYWHERE
            layers = cast("list[AssetLayer]", collection_list["collections"])
            for entry, layer in zip(document["collections"], layers, strict=True):
                own = [system for system in layer.systems.offered if system not in EVERYWHERE]
                listed = [GLOBAL, *own] if layer.systems.obeyed else own or layer.systems.offered
                entry.update(_systems(layer, listed), **_described(layer), title=layer.title)
            return self._shown(request, document, output_type, "collections", "Collections list")

        self._add("/collections", collections, CollectionsDocument)

    def _collection_route(self) -> None:
        super()._collection_route()  # type: ignore[no-untyped-call]
        endpoint_of_tipg = self._pop_endpoint()

        async def collection(request: Request, collection: TheCollection, output_type: TheOutput = None) -> Any:
            """Metadata for a feature collection."""
            document = _read(endpoint_of_tipg(request, collection))
            document.update(_systems(collection, collection.systems.offered), **_described(collection))
            return self._shown(request, document, output_type, "collection", f"{collection.id} collection")

        self._add("/collections/{collectionId}", collection, CollectionDocument)

    def _pop_endpoint(self) -> Callable[..., Response]:
        """Remove the route that TiPG has just added and return its function."""
        return cast("APIRoute", self.router.routes.pop()).endpoint

    def _add(self, path: str, endpoint: Callable[..., Any], document: type[Any]) -> None:
        content: dict[str, Any] = {MediaType.json.value: {}, MediaType.html.value: {}}
        self.router.add_api_route(
            path,
            endpoint,
            response_model=document,
            response_class=ORJSONResponse,
            responses={200: {"content": content}},
            tags=["OGC Features API"],
        )

    def _shown(self, request: Request, document: Any, output: MediaType | None, template: str, title: str) -> Any:
        if output == MediaType.html:
            return self._create_html_response(request, document, template_name=template, title=title)
        return ORJSONResponse(document)


def _read(response: Response) -> Any:
    return orjson.loads(response.body)


def _systems(collection: AssetLayer, listed: list[str]) -> dict[str, Any]:
    storage = collection.systems.storage
    return {"crs": listed, **({"storageCrs": storage} if storage else {})}


def _described(collection: AssetLayer) -> dict[str, Any]:
    metadata = collection.metadata
    return {
        **({"keywords": metadata.keywords} if metadata.keywords else {}),
        **({"attribution": metadata.attribution} if metadata.attribution else {}),
    }
