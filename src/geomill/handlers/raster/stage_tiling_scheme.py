"""The first stage of a large raster: validates it and computes its tiling scheme in one task."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.datasets.refusals import refused
from geomill.handlers.raster.generate_tiling_scheme import TilingOutput, TilingParams, generate_tiling_scheme
from geomill.handlers.raster.validate import ValidateOutput, ValidateParams, validate
from geomill.raster.facts import RasterFacts
from geomill.sdk import HandlerContext, register_handler


class StageTilingParams(BaseModel):
    validation: ValidateParams
    tiling: Annotated[dict[str, Any], Field(description="Parameters of raster.generate_tiling_scheme")]
    band_names: list[str] | None = None


class StageTilingOutput(BaseModel):
    validation: ValidateOutput
    tiling: TilingOutput


@register_handler(
    "raster.stage_tiling_scheme",
    queue="container-tasks",
    timeout_seconds=7200,
    params=StageTilingParams,
    output=StageTilingOutput,
)
def stage_tiling_scheme(ctx: HandlerContext[StageTilingParams]) -> StageTilingOutput:
    """Validates a raster and writes its tiling scheme."""
    validation = validate(ctx.with_params(ctx.params.validation))
    facts = _named(validation.facts, ctx.params.band_names)
    tiling = TilingParams.model_validate({**ctx.params.tiling, "source": validation.source, "facts": facts})
    scheme = generate_tiling_scheme(ctx.with_params(tiling))
    return StageTilingOutput(validation=validation.model_copy(update={"facts": facts}), tiling=scheme)


def _named(facts: RasterFacts, names: list[str] | None) -> RasterFacts:
    if names is None:
        return facts
    if len(names) != facts.count:
        raise refused("band_names", f"{len(names)} band names were given, but the raster has {facts.count} bands")
    bands = [band.model_copy(update={"name": name}) for band, name in zip(facts.bands, names, strict=True)]
    return facts.model_copy(update={"bands": bands})
