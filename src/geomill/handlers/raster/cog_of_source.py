"""Validates a raster and writes it as one COG, in one task. It needs nothing but the place of its source."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from geomill.handlers.raster.create_cog import CogOptions, CreateCogOutput, CreateCogParams, create_cog
from geomill.handlers.raster.validate import ValidateParams, validate
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler


class CogOfSourceParams(CogOptions):
    source_url: str = Field(
        validation_alias=AliasChoices("source_url", "blob_url"),
        description="The source as `zone/container/path`, as `raster.validate` returns it in `blob_url`",
    )
    blob_prefix: str = Field(default="", description="Folder of the output; by default one of the job's own")


class CogOfSourceOutput(CreateCogOutput):
    blob_url: str
    """The COG as `zone/container/path`."""


@register_handler(
    "raster.cog_of_source",
    queue="container-tasks",
    timeout_seconds=7200,
    params=CogOfSourceParams,
    output=CogOfSourceOutput,
    former_names=("raster_cog_docker", "raster_cog"),
)
def cog_of_source(ctx: HandlerContext[CogOfSourceParams]) -> CogOfSourceOutput:
    """Validates a raster and writes it as one COG."""
    source = ObjectName.parse(ctx.params.source_url)
    validation = ValidateParams(
        container_name=source.container,
        file_name=source.path,
        zone=source.zone,
        output_tier=ctx.params.output_tier,
        hash_source=False,
    )
    validated = validate(ctx.with_params(validation))
    options = ctx.params.model_dump(exclude={"source_url"})
    options["blob_prefix"] = ctx.params.blob_prefix or f"jobs/{ctx.job_id}"
    cog = create_cog(ctx.with_params(CreateCogParams(source=validated.source, facts=validated.facts, **options)))
    warnings = [*validated.warnings, *cog.warnings]
    file = cog.files[0]
    place = ObjectName(Zone(file.zone), file.container, file.path)
    return CogOfSourceOutput(**{**dict(cog), "warnings": warnings}, blob_url=str(place))
