"""The catalogue entries of a series of rasters: an item of each, and one of the whole."""

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
from geomill.handlers.raster.stac_register_item import RegisterItemParams, item_parts
from geomill.handlers.raster.validate import ValidateOutput
from geomill.raster.facts import RasterType
from geomill.raster.plan import stem
from geomill.raster.stac import MOST_TILES, BandSummary, build_item, file_asset
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

MOST = 1_000


class RegisterScenesParams(BaseModel):
    """What the steps before have said of each raster, in the same order."""

    validated: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST)]
    """Of `raster.validate`, or the places where results lie that are too large for a row."""
    scenes: list[dict[str, Any]]
    """Of `raster.create_scene`, likewise."""
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
    """What a server needs to know of one."""

    blob_path: str
    raster_type: RasterType
    statistics: list[BandSummary]
    bbox: list[float]
    zoom: int
    """At which it is as fine as a map of the web."""
    rank: int
    """0 lies on top of all others."""


class RegisterScenesOutput(BaseModel):
    stac_item_id: str
    stac_collection_id: str
    stac_item: dict[str, Any]
    stac_items: list[dict[str, Any]]
    stac_collection: dict[str, Any]
    """For the catalogue, which takes them from the outputs of an asset's job."""
    scenes: dict[str, SceneRecord]
    """By the id of their items."""
    blob_path: str
    raster_type: RasterType
    """Of the picture of the whole."""
    bbox: list[float]
    source_file_hash: str
    output_file_hash: str
    """Of the lists of names and hashes."""
    files: list[FileEntry]
    """All that the job has made."""
    warnings: list[str]


@register_handler(
    "raster.stac_register_scenes",
    queue="container-tasks",
    timeout_seconds=1800,
    params=RegisterScenesParams,
    output=RegisterScenesOutput,
)
def stac_register_scenes(ctx: HandlerContext[RegisterScenesParams]) -> RegisterScenesOutput:
    """Makes the STAC items of a series of rasters, as documents beside their data, and for the catalogue."""
    import shapely
    from shapely.geometry import shape

    from geomill.raster.footprint import as_geometry, bbox_of

    params = ctx.params
    validated = [ValidateOutput.model_validate(ctx.read_output(one)) for one in params.validated]
    names = scene_names([one.source.file_name for one in validated])
    known = common_times([one.times for one in validated])
    items, documents, files, scenes, outlines, hashes, warnings = [], [], [], {}, [], [], []
    for number, (name, seen) in enumerate(zip(names, validated, strict=True)):
        ctx.raise_if_cancelled()
        made = CreateSceneOutput.model_validate(ctx.read_output(params.scenes[number]))
        item = _scene(params, name, seen, made)
        parts = item_parts(item, ctx.job_id)
        documents.append(_put(ctx, f"{item.blob_prefix}/item.json", build_item(parts), "stac_item"))
        items.append(build_item(parts.model_copy(update={"folder": params.blob_prefix})))
        scenes[name] = _served(params.overview, number, made)
        files += item.files
        outlines.append(shape(made.preview.geometry))
        hashes.append((made.cog.blob_path, made.cog.output_file_hash))
        warnings += [f"{seen.source.file_name}: {warning}" for warning in (*seen.warnings, *made.cog.warnings)]
        ctx.progress(number + 1, len(names), f"item {number + 1} of {len(names)}")
    together = shapely.unary_union(outlines)
    geometry = as_geometry(list(getattr(together, "geoms", [together])))
    bbox = bbox_of(geometry)
    whole = _whole(params, items, names, known, geometry, bbox, ctx.job_id)
    collection = build_collection(params.stac_collection_id, bbox, known, f"Rasters of {params.stac_collection_id}")
    documents.append(_put(ctx, f"{params.blob_prefix}/item.json", whole, "stac_item"))
    documents.append(_put(ctx, f"{params.blob_prefix}/collection.json", collection, "stac_collection"))
    return RegisterScenesOutput(
        stac_item_id=params.stac_item_id,
        stac_collection_id=params.stac_collection_id,
        stac_item=whole,
        stac_items=items,
        stac_collection=collection,
        scenes=scenes,
        blob_path=params.overview.blob_path,
        raster_type=RasterType.RGBA,
        bbox=bbox,
        source_file_hash=_digest([(one.source.file_name, one.source_file_hash) for one in validated]),
        output_file_hash=_digest(hashes),
        files=[*files, *params.overview.files, *documents],
        warnings=warnings,
    )


def scene_names(file_names: list[str]) -> list[str]:
    """Of the files, made different where they are not: `2020/a.tif` and `2021/a.tif` are `a` and `a-2`."""
    names: list[str] = []
    for file_name in file_names:
        name, number = stem(file_name), 1
        while name in names:
            number += 1
            name = f"{stem(file_name)}-{number}"
        names.append(name)
    return names


def common_times(known: list[Times]) -> Times:
    """From the first to the last. What is known least of one is known of all."""
    start = min(one.datetime or one.start_datetime or "" for one in known)
    end = max(one.datetime or one.end_datetime or "" for one in known)
    origins = {one.known_from for one in known}
    origin = next((origin for origin in ("received", "file") if origin in origins), "input")
    if start == end and all(one.datetime for one in known):
        return Times(datetime=start, known_from=origin)
    return Times(start_datetime=start, end_datetime=end, known_from=origin)


def _scene(
    params: RegisterScenesParams, name: str, seen: ValidateOutput, made: CreateSceneOutput
) -> RegisterItemParams:
    return RegisterItemParams(
        stac_item_id=name,
        stac_collection_id=params.stac_collection_id,
        source=seen.source,
        facts=seen.facts,
        times=seen.times,
        plan=made.cog.plan,
        geometry=made.preview.geometry,
        bbox=made.preview.bbox,
        statistics=made.cog.statistics,
        files=[*made.cog.files, *made.preview.files],
        blob_prefix=made.cog.files[0].path.rpartition("/")[0],
        output_container=params.output_container,
        workflow_id=params.workflow_id,
        workflow_version=params.workflow_version,
    )


def _served(overview: CreateOverviewOutput, number: int, made: CreateSceneOutput) -> SceneRecord:
    return SceneRecord(
        blob_path=made.cog.blob_path,
        raster_type=made.cog.plan.raster_type,
        statistics=made.cog.statistics,
        bbox=made.preview.bbox,
        zoom=overview.zooms[number],
        rank=overview.order.index(number),
    )


def _whole(
    params: RegisterScenesParams,
    items: list[dict[str, Any]],
    names: list[str],
    known: Times,
    geometry: dict[str, Any],
    bbox: list[float],
    job_id: str,
) -> dict[str, Any]:
    """Of very many it names none: each has an item of its own."""
    lineage = f"{len(items):,} rasters, each as a COG"
    shown = zip(names, items, strict=True) if len(items) <= MOST_TILES else ()
    kept = ("href", "type", "roles", "file:size", "file:checksum")
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
            **when(known),
            **provenance(lineage, SOFTWARE, params.workflow_id, params.workflow_version, job_id),
            "geomill:scenes": len(items),
        },
        "links": [],
        "assets": {
            **{name: {"title": name, **{key: item["assets"]["data"][key] for key in kept}} for name, item in shown},
            **pictures,
        },
    }


def _put(ctx: HandlerContext[RegisterScenesParams], path: str, document: dict[str, Any], role: str) -> FileEntry:
    media_type = GEOJSON_TYPE if document["type"] == "Feature" else JSON_TYPE
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    name = ObjectName(Zone.SILVER, ctx.params.output_container, path)
    return FileEntry.of(ctx.storage.sync.put_bytes(name, data, media_type=media_type), media_type, role)


def _digest(named: Iterable[tuple[str, str | None]]) -> str:
    return sha256("".join(f"{digest}  {name}\n" for name, digest in named).encode()).hexdigest()
