"""Builds the STAC items of a series: one for each scene, and one for the whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from geomill.datasets.documents import ID_PATTERN, SOFTWARE
from geomill.datasets.outputs import GEOJSON_TYPE, JSON_TYPE, RASTER_CONTAINER, FileEntry
from geomill.datasets.stac import FILE, PROCESSING, VERSION, build_collection, provenance, when
from geomill.datasets.times import Times
from geomill.handlers.raster.create_overview import CreateOverviewOutput
from geomill.handlers.raster.create_scene import CreateSceneOutput, check_as_many
from geomill.handlers.raster.stac_build_item import StacItemParams, item_parts
from geomill.handlers.raster.validate import ValidateOutput
from geomill.raster.facts import RasterType
from geomill.raster.plan import stem
from geomill.raster.stac import MOST_TILES, BandSummary, build_item, file_asset
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

MOST = 1_000


class StacScenesParams(BaseModel):
    """Outputs of earlier steps for each raster, in the same order."""

    validated: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST)]
    """Outputs of `raster.validate`, or references to large outputs."""
    scenes: list[dict[str, Any]]
    """Outputs of `raster.create_scene`, or references to large outputs."""
    overview: CreateOverviewOutput
    stac_item_id: Annotated[str, Field(pattern=ID_PATTERN)]
    stac_collection_id: Annotated[str, Field(pattern=ID_PATTERN)]
    blob_prefix: str
    output_container: str = RASTER_CONTAINER
    workflow_id: str | None = None
    workflow_version: int | None = None

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        check_as_many(self.validated, self.scenes)
        return self


class SceneRecord(BaseModel):
    """The facts of a scene that serving needs."""

    blob_path: str
    raster_type: RasterType
    statistics: list[BandSummary]
    bbox: list[float]
    zoom: int
    """The zoom at which map pixels are as large as the scene's own."""
    rank: int
    """Position in the stack; 0 is on top."""


class StacScenesOutput(BaseModel):
    stac_item_id: str
    stac_collection_id: str
    stac_item: dict[str, Any]
    stac_items: list[dict[str, Any]]
    stac_collection: dict[str, Any]
    """The catalogue takes item, items and collection from the outputs of an asset's job."""
    scenes: dict[str, SceneRecord]
    """Scenes by the id of their items."""
    blob_path: str
    raster_type: RasterType
    """Type of the overview image."""
    bbox: list[float]
    source_file_hash: str
    output_file_hash: str
    """Hashes of the lists of names and hashes."""
    files: list[FileEntry]
    """All files of the job."""
    warnings: list[str]


@register_handler(
    "raster.stac_build_scenes",
    queue="container-tasks",
    timeout_seconds=1800,
    params=StacScenesParams,
    output=StacScenesOutput,
    former_names=("raster.stac_register_scenes",),
)
def stac_build_scenes(ctx: HandlerContext[StacScenesParams]) -> StacScenesOutput:
    """Builds the STAC items of a series, stores them beside their data and returns them as outputs."""
    import shapely
    from shapely.geometry import shape

    from geomill.raster.footprint import as_geometry, bbox_of

    params = ctx.params
    validations = [ValidateOutput.model_validate(ctx.read_output(output)) for output in params.validated]
    names = scene_names([validation.source.file_name for validation in validations])
    series_times = common_times([validation.times for validation in validations])
    items, documents, files, scenes, outlines, hashes, warnings = [], [], [], {}, [], [], []
    for number, (name, validation) in enumerate(zip(names, validations, strict=True)):
        ctx.raise_if_cancelled()
        scene = CreateSceneOutput.model_validate(ctx.read_output(params.scenes[number]))
        item = _scene(params, name, validation, scene)
        parts = item_parts(item, ctx.job_id)
        documents.append(_put(ctx, f"{item.blob_prefix}/item.json", build_item(parts), "stac_item"))
        items.append(build_item(parts.model_copy(update={"folder": params.blob_prefix})))
        scenes[name] = _served(params.overview, number, scene)
        files += item.files
        outlines.append(shape(scene.preview.geometry))
        hashes.append((scene.cog.blob_path, scene.cog.output_file_hash))
        scene_warnings = (*validation.warnings, *scene.cog.warnings, *scene.preview.warnings)
        warnings += [f"{validation.source.file_name}: {warning}" for warning in scene_warnings]
        ctx.progress(number + 1, len(names), f"item {number + 1} of {len(names)}")
    together = shapely.unary_union(outlines)
    geometry = as_geometry(list(getattr(together, "geoms", [together])))
    bbox = bbox_of(geometry)
    whole = _whole(params, items, names, series_times, geometry, bbox, ctx.job_id)
    description = f"Rasters of {params.stac_collection_id}"
    collection = build_collection(params.stac_collection_id, bbox, series_times, description)
    documents.append(_put(ctx, f"{params.blob_prefix}/item.json", whole, "stac_item"))
    documents.append(_put(ctx, f"{params.blob_prefix}/collection.json", collection, "stac_collection"))
    return StacScenesOutput(
        stac_item_id=params.stac_item_id,
        stac_collection_id=params.stac_collection_id,
        stac_item=whole,
        stac_items=items,
        stac_collection=collection,
        scenes=scenes,
        blob_path=params.overview.blob_path,
        raster_type=RasterType.RGBA,
        bbox=bbox,
        source_file_hash=_digest(
            (validation.source.file_name, validation.source_file_hash) for validation in validations
        ),
        output_file_hash=_digest(hashes),
        files=[*files, *params.overview.files, *documents],
        warnings=warnings,
    )


def scene_names(file_names: list[str]) -> list[str]:
    """Return names for the files. Equal stems get numbers: `2020/a.tif` and `2021/a.tif` become `a` and `a-2`."""
    names: list[str] = []
    for file_name in file_names:
        name, number = stem(file_name), 1
        while name in names:
            number += 1
            name = f"{stem(file_name)}-{number}"
        names.append(name)
    return names


def common_times(scene_times: list[Times]) -> Times:
    """Return the range from the first to the last time, with the least certain origin of all."""
    start = min(times.datetime or times.start_datetime or "" for times in scene_times)
    end = max(times.datetime or times.end_datetime or "" for times in scene_times)
    origins = {times.known_from for times in scene_times}
    origin = next((origin for origin in ("received", "file") if origin in origins), "input")
    if start == end and all(times.datetime for times in scene_times):
        return Times(datetime=start, known_from=origin)
    return Times(start_datetime=start, end_datetime=end, known_from=origin)


def _scene(params: StacScenesParams, name: str, validation: ValidateOutput, scene: CreateSceneOutput) -> StacItemParams:
    return StacItemParams(
        stac_item_id=name,
        stac_collection_id=params.stac_collection_id,
        source=validation.source,
        facts=validation.facts,
        times=validation.times,
        plan=scene.cog.plan,
        geometry=scene.preview.geometry,
        bbox=scene.preview.bbox,
        statistics=scene.cog.statistics,
        files=[*scene.cog.files, *scene.preview.files],
        blob_prefix=scene.cog.files[0].path.rpartition("/")[0],
        output_container=params.output_container,
        workflow_id=params.workflow_id,
        workflow_version=params.workflow_version,
    )


def _served(overview: CreateOverviewOutput, number: int, scene: CreateSceneOutput) -> SceneRecord:
    return SceneRecord(
        blob_path=scene.cog.blob_path,
        raster_type=scene.cog.plan.raster_type,
        statistics=scene.cog.statistics,
        bbox=scene.preview.bbox,
        zoom=overview.zooms[number],
        rank=overview.order.index(number),
    )


def _whole(
    params: StacScenesParams,
    items: list[dict[str, Any]],
    names: list[str],
    series_times: Times,
    geometry: dict[str, Any],
    bbox: list[float],
    job_id: str,
) -> dict[str, Any]:
    """Return the item of the whole series. It lists no scenes if there are very many; each has an item of its own."""
    lineage = f"{len(items):,} rasters, each as a COG"
    shown = zip(names, items, strict=True) if len(items) <= MOST_TILES else ()
    asset_fields = ("href", "type", "roles", "file:size", "file:checksum")
    pictures = {file.role: file_asset(file, params.blob_prefix) for file in params.overview.files}
    return {
        "type": "Feature",
        "stac_version": VERSION,
        "stac_extensions": [FILE, PROCESSING],
        "id": params.stac_item_id,
        "collection": params.stac_collection_id,
        "geometry": geometry,
        "bbox": bbox,
        "properties": {
            **when(series_times),
            **provenance(lineage, SOFTWARE, params.workflow_id, params.workflow_version, job_id),
            "geomill:scenes": len(items),
        },
        "links": [],
        "assets": {
            **{
                name: {"title": name, **{key: item["assets"]["data"][key] for key in asset_fields}}
                for name, item in shown
            },
            **pictures,
        },
    }


def _put(ctx: HandlerContext[StacScenesParams], path: str, document: dict[str, Any], role: str) -> FileEntry:
    media_type = GEOJSON_TYPE if document["type"] == "Feature" else JSON_TYPE
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    name = ObjectName(Zone.SILVER, ctx.params.output_container, path)
    return FileEntry.of(ctx.storage.sync.put_bytes(name, data, media_type=media_type), media_type, role)


def _digest(named: Iterable[tuple[str, str | None]]) -> str:
    return sha256("".join(f"{digest}  {name}\n" for name, digest in named).encode()).hexdigest()
