"""Features of a collection as a file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from geomill.contract.extracts import ExtractView
from geomill.downloads.formats import KINDS, DownloadFormat
from geomill.downloads.order import DownloadColumn, FeaturesOrder
from geomill.identity.passwords import password_for
from geomill.serve.downloads.desk import MOST_BYTES, MOST_ROWS, DownloadDesk
from geomill.serve.downloads.extracts import Extracts
from geomill.serve.vector.collections import GEOMETRIES, AssetLayer, TheCollection
from geomill.serve.vector.crs import box_in_degrees
from geomill.serve.vector.filters import TheFilter
from geomill.store.quoting import identifier

DEGREES = 4326
ANY_ROWS = 10**12
"""An extract is limited by its bytes."""
MOST_INDEXED_ROWS = 10_000_000
"""GDAL keeps the index of a FlatGeobuf file in memory, some 85 bytes for each feature."""
TheBox = Annotated[list[float] | None, Depends(box_in_degrees)]


def router(url: str, extracts: Extracts) -> APIRouter:
    """Return the routes. `url` is the database from which the child process reads."""
    routes, desk = APIRouter(tags=["Downloads"]), DownloadDesk()

    @routes.get("/collections/{collectionId}/download", summary="Download features", response_class=Response)
    async def download(
        request: Request,
        collection: TheCollection,
        condition: TheFilter,
        box: TheBox,
        file_format: Annotated[DownloadFormat, Query(alias="f", description="Format of the file.")],
    ) -> Response:
        """All features, or those that `filter` and `bbox` choose. GeoJSON and CSV have degrees, and the other formats
        the reference system of the table."""
        kind = KINDS[file_format]
        order = features_order(url, collection, file_format, condition, box)
        if token := await password_for(url):
            order = order.model_copy(update={"password": token})
        return await desk.answer(request, order, f"{order.name}.{kind.suffix}", kind.media_type)

    @routes.post(
        "/collections/{collectionId}/download",
        summary="Order features as an extract",
        status_code=202,
        response_model=ExtractView,
    )
    async def order_extract(
        request: Request,
        collection: TheCollection,
        condition: TheFilter,
        box: TheBox,
        file_format: Annotated[DownloadFormat, Query(alias="f", description="Format of the file.")],
    ) -> Response:
        """The same features as those of the download, written by a job, for a file that is too large for an answer. The
        answer tells where to follow it."""
        kind = KINDS[file_format]
        order = features_order(url, collection, file_format, condition, box)
        most = MOST_INDEXED_ROWS if file_format is DownloadFormat.FLATGEOBUF else ANY_ROWS
        large = order.model_copy(update={"most_rows": most})
        name = f"{order.name}.{kind.suffix}"
        return await extracts.order(request, request.state.served, large, name, kind.media_type)

    return routes


def features_order(
    url: str, layer: AssetLayer, file_format: DownloadFormat, condition: object, box: list[float] | None
) -> FeaturesOrder:
    geometry = layer.geometry_column
    srid = (geometry.srid if geometry else None) or DEGREES
    plain = [column for column in layer.table_columns if column.type not in GEOMETRIES]
    shape = f"CAST({identifier(geometry.name)} AS geometry)" if geometry else "CAST(NULL AS geometry)"
    if KINDS[file_format].degrees and srid != DEGREES:
        shape, srid = f"ST_Transform({shape}, {DEGREES})", DEGREES
    columns = [identifier(column.name) for column in plain]
    where = layer.cql_where(bbox=box, cql=condition)
    statement = (
        f"SELECT {', '.join([*columns, f'ST_AsBinary({shape})'])} {layer._from(None, [])}"  # noqa: SLF001
        f" {layer._where_clause(where)} {layer._sortby(None)}"  # noqa: SLF001
    )
    return FeaturesOrder(
        url=url,
        statement=statement,
        format=file_format,
        name=file_name(layer),
        columns=[DownloadColumn(name=column.name, type=column.type) for column in plain],
        geometry_type=geometry.geometry_type if geometry else None,
        srid=srid,
        most_rows=MOST_ROWS,
        most_bytes=MOST_BYTES,
    )


def file_name(layer: AssetLayer) -> str:
    """Return the name of the file and of the layer in it: letters, digits and `_`."""
    text = "".join(character if character.isascii() and character.isalnum() else "_" for character in layer.title or "")
    return text.strip("_")[:50] or "features"
