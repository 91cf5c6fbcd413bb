"""Writes the COG and the preview images of one scene. Both steps run in one task because they use the same pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from geomill.handlers.raster.create_cog import CogOptions, CreateCogOutput, CreateCogParams, create_cog
from geomill.handlers.raster.create_preview import CreatePreviewOutput, CreatePreviewParams, create_preview
from geomill.handlers.raster.validate import ValidateOutput
from geomill.sdk import HandlerContext, register_handler


class CreateSceneParams(CogOptions):
    validated: dict[str, Any]
    """The output of `raster.validate`, or the reference to a large output."""


class CreateSceneOutput(BaseModel):
    cog: CreateCogOutput
    preview: CreatePreviewOutput


@register_handler(
    "raster.create_scene",
    queue="container-tasks",
    timeout_seconds=7200,
    params=CreateSceneParams,
    output=CreateSceneOutput,
)
def create_scene(ctx: HandlerContext[CreateSceneParams]) -> CreateSceneOutput:
    """Writes the COG of a validated raster, its preview and its thumbnail."""
    params = ctx.params
    validated = ValidateOutput.model_validate(ctx.read_output(params.validated))
    cog_params = CreateCogParams(
        source=validated.source, facts=validated.facts, **params.model_dump(exclude={"validated"})
    )
    cog = create_cog(ctx.with_params(cog_params))
    pictures = CreatePreviewParams(
        plan=cog.plan, parts=cog.parts, blob_prefix=params.blob_prefix, output_container=params.output_container
    )
    return CreateSceneOutput(cog=cog, preview=create_preview(ctx.with_params(pictures)))


def check_as_many(validated: Sequence[Any], scenes: Sequence[Any]) -> None:
    if len(validated) != len(scenes):
        raise ValueError(
            f"validated has {len(validated)} entries and scenes has {len(scenes)}; both need the same number"
        )
