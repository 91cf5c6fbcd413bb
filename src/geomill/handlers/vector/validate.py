"""Checks whether a layer can be opened and loaded, and reports its facts."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.datasets.patience import first_look
from geomill.datasets.source import Source
from geomill.datasets.source_styles import SourceStyles
from geomill.datasets.times import Times, times
from geomill.sdk import HandlerContext, Zone, register_handler
from geomill.vector.facts import DateOrder, LayerFacts, LoadingRules, Mixed, Reading

TIMEOUT_SECONDS = 3600


class ValidateVectorParams(BaseModel):
    container_name: str
    file_name: str
    zone: Zone = Zone.BRONZE
    layer: str | None = None
    source_crs: str | None = None
    encoding: str | None = None
    x_column: str | None = None
    y_column: str | None = None
    wkt_column: str | None = None
    date_order: DateOrder | None = None
    swap_xy: bool = False
    target_crs: str = "EPSG:4326"
    keep_z: bool = False
    mixed_geometries: Mixed = Mixed.REFUSE
    id_column: str | None = None
    datetime: str | None = None
    start_datetime: str | None = None
    end_datetime: str | None = None


class ValidateVectorOutput(BaseModel):
    source: Source
    reading: Reading
    facts: LayerFacts
    rules: LoadingRules
    bounds: tuple[int, int]
    """The range that is divided into chunks."""
    file_size_bytes: int
    times: Times
    styles: SourceStyles = SourceStyles()
    warnings: list[str]


@register_handler(
    "vector.validate",
    queue="container-tasks",
    timeout_seconds=TIMEOUT_SECONDS,
    params=ValidateVectorParams,
    output=ValidateVectorOutput,
)
def validate(ctx: HandlerContext[ValidateVectorParams]) -> ValidateVectorOutput:
    """Opens a layer safely and reports its facts."""
    from geomill.vector.inspection import check_id_column, inspect
    from geomill.vector.layers import read_errors_as_refusals
    from geomill.vector.loading import configure
    from geomill.vector.opening import open_source
    from geomill.vector.source_styles import read_styles

    params = ctx.params
    configure()
    source = Source(zone=params.zone, container_name=params.container_name, file_name=params.file_name)
    info = ctx.storage.sync.stat(source.name)
    source = source.model_copy(update={"etag": info.etag})
    source_times, time_warnings = times(
        params.datetime, params.start_datetime, params.end_datetime, None, info.modified.isoformat()
    )
    reading = Reading.model_validate(params.model_dump(include=set(Reading.model_fields)))
    with first_look(ctx, params.file_name, info.size, TIMEOUT_SECONDS), read_errors_as_refusals(params.file_name):
        layer = open_source(ctx, source, reading)
        ctx.progress(0.1, message=f"{layer.format.value}, {layer.rows:,} features")
        facts, rules, warnings = inspect(
            layer, params.file_name, reading, params.mixed_geometries, params.target_crs, keep_z=params.keep_z
        )
        bounds = layer.bounds_of_ids()
    check_id_column(facts.columns, params.id_column)
    styles, style_warnings = read_styles(ctx, source, reading.layer, facts)
    return ValidateVectorOutput(
        source=source,
        reading=reading,
        facts=facts,
        rules=rules,
        bounds=bounds,
        file_size_bytes=info.size,
        times=source_times,
        styles=styles,
        warnings=[*warnings, *time_warnings, *style_warnings],
    )
