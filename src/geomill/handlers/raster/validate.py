"""Checks whether a raster can be opened, and reports its facts and oddities."""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, Field

from geomill.datasets.hashing import sha256_of
from geomill.datasets.patience import first_look
from geomill.datasets.source import Source
from geomill.datasets.times import Times, times
from geomill.raster.facts import RasterFacts, RasterType
from geomill.raster.tiers import Tier, check_tier
from geomill.sdk import HandlerContext, Zone, register_handler

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
    hash_source: bool = True


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
    from geomill.raster.inspection import inspect
    from geomill.raster.opening import opened

    params = ctx.params
    source = Source(zone=params.zone, container_name=params.container_name, file_name=params.file_name)
    info = ctx.storage.sync.stat(source.name)
    data_times, undated = times(
        params.datetime, params.start_datetime, params.end_datetime, None, info.modified.isoformat()
    )
    with first_look(ctx, params.file_name, info.size, TIMEOUT_SECONDS):
        with opened(ctx.storage, source.name) as dataset:
            facts, warnings = inspect(dataset, source.name)
        classes, doubts = read_classes(ctx.storage, source.name)
    if classes and facts.count == 1 and not facts.dtype.startswith("float"):
        facts = facts.model_copy(update={"classes": classes, "raster_type": RasterType.CATEGORICAL})
    if params.raster_type is not None:
        facts = facts.model_copy(update={"raster_type": params.raster_type})
    if undated and facts.acquired:
        data_times, undated = times(None, None, None, facts.acquired, info.modified.isoformat())
    check_tier(params.output_tier, facts.raster_type, facts.dtype)
    ctx.progress(0.3, message=f"{facts.raster_type.value}, {facts.width:,} by {facts.height:,} pixels")
    digest = sha256_of(ctx.storage, source.name, ctx) if params.hash_source else None
    return ValidateOutput(
        source=source.model_copy(update={"etag": info.etag}),
        blob_url=str(source.name),
        facts=facts,
        raster_type=facts.raster_type,
        file_size_bytes=info.size,
        file_size_mb=round(info.size / MEGABYTE, 6),
        uncompressed_mb=round(facts.uncompressed_bytes / MEGABYTE, 6),
        source_file_hash=digest,
        times=data_times,
        warnings=[*warnings, *doubts, *undated],
    )
