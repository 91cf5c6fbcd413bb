"""Styles of a vector for MapLibre."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from morecantile import tms as grids
from tipg.resources.response import ORJSONResponse

from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.assets.drawing import SOURCE, maplibre_layers
from geomill.domain.assets.served import Served
from geomill.domain.assets.style import VectorStyle
from geomill.serve.vector.collections import TheCollection

router = APIRouter(tags=["OGC Tiles API"])


@router.get("/collections/{collectionId}/tiles/{tileMatrixSetId}/style.json", response_class=ORJSONResponse)
async def style_json(
    request: Request,
    collection: TheCollection,
    grid: Annotated[Literal[tuple(grids.list())], Path(alias="tileMatrixSetId")],  # type: ignore[valid-type]
    style: Annotated[str | None, Query(max_length=64, description="Name of a style of the asset.")] = None,
) -> ORJSONResponse:
    """A style document of MapLibre, in a style of the asset or its default one."""
    served: Served = request.state.served
    chosen = served.styles.find(style)
    ticket = request.query_params.get(PARAMETER)
    query = f"?{urlencode({PARAMETER: ticket})}" if ticket else ""
    base = f"{str(request.base_url).rstrip('/')}/collections/{collection.id}/tiles/{grid}"
    document: dict[str, Any] = {
        "version": 8,
        "name": collection.title or collection.id,
        "sources": {SOURCE: {"type": "vector", "url": f"{base}/tilejson.json{query}"}},
        "layers": maplibre_layers(chosen if isinstance(chosen, VectorStyle) else VectorStyle()),
    }
    return ORJSONResponse(document)
