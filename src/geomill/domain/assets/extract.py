"""Extracts: files of features or pixels that callers ordered, because they are too large for an answer."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, Any, ClassVar

from pydantic import AwareDatetime, BaseModel, Field

from geomill.domain.entity import BigInt, Entity, ForeignKey, Index, Json, Key, Now, Subject
from geomill.domain.objectname import ObjectName, Zone

CONTAINER = "extracts"
"""The container in silver with the files of extracts."""


class NewExtract(BaseModel):
    """An extract before it is stored."""

    extract_id: Key
    asset_id: Key
    revision: Annotated[int, Field(ge=1)]
    withdrawn_through: int = Field(
        description="That of the asset at the order; a withdrawal since then ends the extract"
    )
    ordered_by: Subject = Field(description="The caller whose limits count it")
    file_name: Annotated[str, Field(max_length=200)]
    media_type: Annotated[str, Field(max_length=100)]
    work: Json = Field(description="The order that the job carries out, without credentials")
    most_bytes: BigInt
    job_id: Key


class Extract(NewExtract, Entity):
    """A file that a job writes for a caller. It goes when its time is over, or when its revision goes."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "extracts"
    __sql_primary_key__: ClassVar = ("extract_id",)
    __sql_new__: ClassVar = NewExtract
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_extracts_caller", ("ordered_by",)),
        Index("idx_extracts_asset", ("asset_id",)),
    )

    created_at: Now
    expires_at: AwareDatetime
    removing: bool = Field(default=False, description="Whether its file is being deleted; nobody gets it any more")

    @property
    def folder(self) -> str:
        return self.extract_id


def file_of(path: str) -> ObjectName:
    """Return the object of an extract's file by its path in the container."""
    return ObjectName(Zone.SILVER, CONTAINER, path)


def new_extract_id() -> str:
    """Return an id that nobody can guess."""
    return secrets.token_hex(16)


def plain_name(text: str) -> str:
    """Return a text as the name of a file: letters, digits, `.`, `_` and `-`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:100].lstrip(".") or "extract"


def without_credentials(work: dict[str, Any]) -> dict[str, Any]:
    """Return the work as it is stored. The job has credentials of its own."""
    return {name: value for name, value in work.items() if name not in ("url", "password", "options")}
