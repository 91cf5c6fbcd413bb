"""Checks whether a raster can be opened, and reports its facts and oddities."""

from __future__ import annotations

import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import AliasChoices, BaseModel, Field

from geomill.datasets.hashing import sha256_of
from geomill.datasets.intermediates import DRAFT_PREFIX, folder_of
from geomill.datasets.outputs import INTERMEDIATE_CONTAINER
from geomill.datasets.patience import first_look
from geomill.datasets.source import Source
from geomill.datasets.source_styles import SourceStyles
from geomill.datasets.times import Times, times
from geomill.raster.facts import RasterFacts, RasterType
from geomill.raster.plan import stem
from geomill.raster.tiers import Tier, check_tier
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

if TYPE_CHECKING:
    from geomill.raster.placing import PlacedSource

MEGABYTE = 1024 * 1024
TIMEOUT_SECONDS = 1800


class ValidateParams(BaseModel):
    container_name: str
    file_name: str = Field(validation_alias=AliasChoices("file_name", "blob_name"))
    zone: Zone = Zone.BRONZE
    output_tier: Tier = Tier.ANALYSIS
    raster_type: RasterType | None = None
    datetime: str | None = None
    start_datetime: str | None = None
    end_datetime: str | None = None
    source_crs: str | None = None
    variable: str | None = None
    time: str | None = None
    hash_source: bool = True
    read_styles: bool = True
    """Whether a style beside the raster is read. A series of rasters has no style of its own."""


class ValidateOutput(BaseModel):
    source: Source
    blob_url: str = ""
    """The source as `zone/container/path`, for handlers that take a `source_url`."""
    facts: RasterFacts
    raster_type: RasterType
    file_size_bytes: int
    file_size_mb: float
    uncompressed_mb: float
    source_file_hash: str | None
    times: Times
    styles: SourceStyles = SourceStyles()
    warnings: list[str]


@register_handler(
    "raster.validate",
    queue="container-tasks",
    timeout_seconds=TIMEOUT_SECONDS,
    params=ValidateParams,
    output=ValidateOutput,
    former_names=("raster_validate",),
)
def validate(ctx: HandlerContext[ValidateParams]) -> ValidateOutput:
    """Opens a raster safely and reports its facts."""
    from geomill.raster.attribute_table import read_classes
    from geomill.raster.source_styles import read_styles

    params = ctx.params
    source = Source(zone=params.zone, container_name=params.container_name, file_name=params.file_name)
    info = ctx.storage.sync.stat(source.name)
    data_times, undated = times(
        params.datetime, params.start_datetime, params.end_datetime, None, info.modified.isoformat()
    )
    with first_look(ctx, params.file_name, info.size, TIMEOUT_SECONDS):
        readable, facts, warnings = _examined(ctx, source)
        classes, doubts = read_classes(ctx.storage, source.name)
    if classes and facts.count == 1 and not facts.dtype.startswith("float"):
        facts = facts.model_copy(update={"classes": classes, "raster_type": RasterType.CATEGORICAL})
    if params.raster_type is not None:
        facts = facts.model_copy(update={"raster_type": params.raster_type})
    if undated and facts.acquired:
        data_times, undated = times(None, None, None, facts.acquired, info.modified.isoformat())
    check_tier(params.output_tier, facts.raster_type, facts.dtype)
    styles, lost = read_styles(ctx.storage, source.name, facts) if params.read_styles else (SourceStyles(), [])
    ctx.progress(0.3, message=f"{facts.raster_type.value}, {facts.width:,} by {facts.height:,} pixels")
    digest = sha256_of(ctx.storage, source.name, ctx) if params.hash_source else None
    etag = info.etag if readable is source else ctx.storage.sync.stat(readable.name).etag
    return ValidateOutput(
        source=readable.model_copy(update={"etag": etag}),
        blob_url=str(readable.name),
        facts=facts,
        raster_type=facts.raster_type,
        file_size_bytes=info.size,
        file_size_mb=round(info.size / MEGABYTE, 6),
        uncompressed_mb=round(facts.uncompressed_bytes / MEGABYTE, 6),
        source_file_hash=digest,
        times=data_times,
        styles=styles,
        warnings=[*warnings, *doubts, *undated, *lost],
    )


def _examined(ctx: HandlerContext[ValidateParams], source: Source) -> tuple[Source, RasterFacts, list[str]]:
    """Return the file that later steps read, its facts, and warnings. It is the source itself or a GeoTIFF of it."""
    from geomill.raster.inspection import inspect
    from geomill.raster.opening import opened
    from geomill.raster.placing import SourceOptions, placed_source

    params = ctx.params
    options = SourceOptions(source_crs=params.source_crs, variable=params.variable, time=params.time)
    with placed_source(ctx.storage, source.name, options) as placed:
        if not placed.converted:
            return source, *inspect(placed.dataset, source.name)
        converted = _written(ctx, source, placed)
        acquired, placing_warnings = placed.acquired, placed.warnings
    with opened(ctx.storage, converted.name) as dataset:
        facts, warnings = inspect(dataset, source.name)
    return converted, facts.model_copy(update={"acquired": acquired or facts.acquired}), [*placing_warnings, *warnings]


def _written(ctx: HandlerContext[ValidateParams], source: Source, placed: PlacedSource) -> Source:
    """Write the source as a GeoTIFF among the intermediates of the job."""
    from geomill.raster.placing import write_geotiff

    params = ctx.params
    choice = repr((source.file_name, params.variable, params.time, params.source_crs))
    folder = f"{folder_of(ctx.job_id)}/source-{sha256(choice.encode()).hexdigest()[:12]}"
    target = ObjectName(Zone.SILVER, INTERMEDIATE_CONTAINER, f"{folder}/{stem(source.file_name)}.tif")
    ctx.progress(0.1, message="writing the source as a GeoTIFF")
    with tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as drafts:
        draft = Path(drafts) / "source.tif"
        write_geotiff(placed, draft)
        ctx.storage.sync.put_file(target, draft, media_type="image/tiff")
    return Source(zone=target.zone, container_name=target.container, file_name=target.path)
