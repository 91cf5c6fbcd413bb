"""Platforms: the partner applications that publish data, and the identifiers that each of them uses.

A partner's identifiers are data, stored as `platform_refs`. They identify an asset, but no table has them as its key.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Index, Now
from geomill.errors import InputError, Problem, nearest

DDH = "ddh"
DDH_REFS = ("dataset_id", "resource_id", "version_id")
LONGEST_REF = 200

Ref = str | int
"""A string or an integer. Other types can be written in more than one way."""
Refs = dict[str, Ref]

PLATFORM_ID = re.compile(r"[a-z][a-z0-9_]{0,49}")
PlatformId = Annotated[str, Field(min_length=1, max_length=50, pattern=r"^[a-z][a-z0-9_]*$")]
WorkflowId = Annotated[str, Field(min_length=1, max_length=64)]
ContainerName = Annotated[str, Field(min_length=3, max_length=63, pattern=r"^[a-z0-9](-?[a-z0-9])+$")]
RefName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z][a-z0-9_]*$")]


class Platform(Entity):
    """A partner application, and the identifiers that it must and may give."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "platforms"
    __sql_primary_key__: ClassVar = ("platform_id",)
    __sql_indexes__: ClassVar = (Index("idx_platforms_active", ("is_active",), where="is_active"),)
    __sql_seed__: ClassVar = (
        {
            "platform_id": DDH,
            "display_name": "Data Distribution Hub",
            "description": "Datasets, their resources, and versions of these",
            "required_refs": list(DDH_REFS),
            "containers": ["uploads"],
        },
        {
            "platform_id": "arcgis",
            "display_name": "ArcGIS",
            "description": "Items of an ArcGIS portal, and their layers",
            "required_refs": ["item_id", "layer_index"],
        },
    )

    platform_id: PlatformId
    display_name: Annotated[str, Field(min_length=1, max_length=100)]
    description: Annotated[str, Field(max_length=2000)] | None = None
    required_refs: Annotated[list[RefName], Field(min_length=1, max_length=20)] = Field(
        default_factory=list, description="Keys that platform_refs must have; the first one groups assets"
    )
    optional_refs: Annotated[list[RefName], Field(max_length=20)] = Field(
        default_factory=list, description="Other keys that platform_refs may have"
    )
    workflows: Annotated[list[WorkflowId], Field(max_length=100)] | None = Field(
        default=None, description="Workflows that its partners may name; if absent, the configured ones"
    )
    containers: Annotated[list[ContainerName], Field(max_length=100)] = Field(
        default_factory=list, description="Containers in bronze that its partners may submit from, besides its own"
    )
    is_active: bool = Field(default=True, description="Whether it may submit")
    created_at: Now
    updated_at: Now

    def check_refs(self, refs: Mapping[str, Ref]) -> None:
        """Raise `InputError` if a required identifier is missing, one is unknown, or a value cannot be stored."""
        problems = [*self._missing(refs), *self._unknown(refs), *_bad_values(refs)]
        if problems:
            raise InputError(
                f"the platform_refs do not fit the platform '{self.platform_id}': {problems[0]}", problems=problems
            )

    @property
    def own_container(self) -> str:
        return own_container(self.platform_id)

    def may_read(self, container: str) -> bool:
        """Whether its partners may submit files of this container in bronze."""
        return container == self.own_container or container in self.containers

    def group_of(self, refs: Mapping[str, Ref]) -> Ref:
        """Return the identifier that groups assets; for DDH that is the dataset."""
        return refs[self.required_refs[0]]

    def in_order(self, refs: Mapping[str, Ref]) -> list[Ref]:
        """Return the values in the order in which the platform lists their names."""
        return [refs[name] for name in (*self.required_refs, *self.optional_refs) if name in refs]

    def _missing(self, refs: Mapping[str, Ref]) -> Iterator[Problem]:
        for name in self.required_refs:
            if name not in refs:
                yield Problem(f"platform_refs.{name}", "is missing", f"give {', '.join(self.required_refs)}")

    def _unknown(self, refs: Mapping[str, Ref]) -> Iterator[Problem]:
        accepted = (*self.required_refs, *self.optional_refs)
        for name in refs:
            if name not in accepted:
                yield Problem(f"platform_refs.{name}", "there is no such identifier", nearest(name, accepted))


def own_container(platform_id: str) -> str:
    """Return the container in bronze that has the platform's name, with hyphens instead of underscores."""
    return platform_id.replace("_", "-")


def _bad_values(refs: Mapping[str, Ref]) -> Iterator[Problem]:
    for name, value in refs.items():
        if isinstance(value, str) and (reason := _bad_text(value)):
            yield Problem(f"platform_refs.{name}", reason, f"got {value[:40]!r}")
        elif isinstance(value, int) and abs(value) > 2**53:
            yield Problem(f"platform_refs.{name}", "is too large for a JSON number", "send it as a string")


def _bad_text(value: str) -> str:
    if not value.strip():
        return "must not be empty"
    if len(value) > LONGEST_REF:
        return f"must have at most {LONGEST_REF} characters"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        return "must not have control characters"
    return ""
