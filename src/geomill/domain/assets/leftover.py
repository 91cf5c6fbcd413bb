"""Leftovers: revisions whose data was deleted because it is no longer needed."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, ForeignKey, Key, Now


class AssetLeftover(Entity):
    """A revision that failed, was cancelled or was superseded, and whose files and tables were deleted."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "asset_leftovers"
    __sql_primary_key__: ClassVar = ("asset_id", "revision")
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )

    asset_id: Key
    revision: Annotated[int, Field(ge=1)]
    job_id: Key | None = Field(
        default=None, description="The job that made the data; a retry may make the revision again"
    )
    deleted_at: Now
