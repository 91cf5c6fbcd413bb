"""Requests and responses about platforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from geomill.contract.inputs import ApiInput, storable
from geomill.domain.assets.platform import ContainerName, Platform, PlatformId, RefName, WorkflowId


class PlatformPage(BaseModel):
    platforms: list[Platform]


class PlatformChanges(ApiInput):
    """Changes to a platform. Its required identifiers never change, because they identify its assets."""

    display_name: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(storable)]
    description: Annotated[str, StringConstraints(max_length=2000), AfterValidator(storable)] | None = None
    optional_refs: Annotated[list[RefName], Field(max_length=20)] = Field(default_factory=list)
    workflows: Annotated[list[WorkflowId], Field(max_length=100)] | None = Field(
        default=None, description="Workflows that its partners may name; null for the configured defaults"
    )
    containers: Annotated[list[ContainerName], Field(max_length=100)] = Field(
        default_factory=list,
        description="Bronze containers its partners may submit from, besides the one that has the platform's name",
    )
    is_active: Annotated[bool, Field(strict=True)] = True


class NewPlatform(PlatformChanges):
    platform_id: PlatformId
    required_refs: Annotated[list[RefName], Field(min_length=1, max_length=20)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        require_distinct(self.required_refs, self.optional_refs)
        return self


def require_distinct(required: Sequence[str], optional: Sequence[str]) -> None:
    names = [*required, *optional]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"required_refs and optional_refs name {', '.join(twice)} twice")
