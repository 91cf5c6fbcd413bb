"""Requests and responses about platforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from geomill.contract.inputs import ApiInput, storable
from geomill.domain.assets.platform import ContainerName, Platform, PlatformId, RefName, WorkflowId

DisplayName = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(storable)]
Description = Annotated[str, StringConstraints(max_length=2000), AfterValidator(storable)]
OptionalRefs = Annotated[list[RefName], Field(max_length=20)]
Workflows = Annotated[list[WorkflowId], Field(max_length=100)]
Containers = Annotated[list[ContainerName], Field(max_length=100)]

CHANGEABLE = ("display_name", "description", "optional_refs", "workflows", "containers", "is_active")
"""The fields that may change. The required identifiers never do, because they identify a platform's assets."""


def _without_default(schema: dict[str, Any]) -> None:
    """Leave out a default that only stands for a field that was not named, and would not be valid."""
    schema.pop("default", None)


class PlatformPage(BaseModel):
    platforms: list[Platform]


class PlatformFields(ApiInput):
    """The fields of a platform that may change."""

    display_name: DisplayName
    description: Description | None = None
    optional_refs: OptionalRefs = Field(default_factory=list)
    workflows: Workflows | None = Field(
        default=None, description="Workflows that its partners may name; null for the configured defaults"
    )
    containers: Containers = Field(
        default_factory=list,
        description="Bronze containers its partners may submit from, besides the one that has the platform's name",
    )
    is_active: Annotated[bool, Field(strict=True)] = True


class PlatformChanges(PlatformFields):
    """Changes to a platform. Fields that are not named stay as they are."""

    display_name: DisplayName = Field(default="", json_schema_extra=_without_default)
    expected_updated_at: AwareDatetime | None = Field(
        default=None, description="`updated_at` as you know it; if the platform has changed since, nothing is changed"
    )

    def named(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CHANGEABLE if name in self.model_fields_set}


class PlatformReplacement(PlatformChanges):
    """All fields of a platform that may change. Each must be named."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"required": list(CHANGEABLE)})


class NewPlatform(PlatformFields):
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
