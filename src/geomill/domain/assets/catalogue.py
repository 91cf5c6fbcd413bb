"""The tables of the catalogue beside pgstac's own, in the database of each zone.

The functions that write items and count them are in `sql/functions`; the entries are built in `catalogue/`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Index, Json, Key, Now

CollectionId = Annotated[str, Field(max_length=200)]


class CatalogueCollection(Entity):
    """A STAC collection: its platform, its counts of items, and the extent of its public items."""

    __sql_schema__: ClassVar = "catalogue"
    __sql_table__: ClassVar = "collections"
    __sql_primary_key__: ClassVar = ("collection_id",)
    __sql_functions__: ClassVar = (
        "catalogue.sound_place",
        "catalogue.widened_extent",
        "catalogue.touches_extent",
        "catalogue.measure_collection",
        "catalogue.reserve_collection",
        "catalogue.item_row",
        "catalogue.leaves_edge",
        "catalogue.write_items",
        "catalogue.put_items",
        "catalogue.visible_collections",
        "catalogue.search_collections",
        "catalogue.item_rule",
        "catalogue.guarded",
        "catalogue.item_document",
        "catalogue.known_count",
        "catalogue.search_items",
    )

    collection_id: CollectionId
    platform_id: Annotated[str, Field(max_length=50)] | None = None
    items: int = 0
    public_items: int = 0
    public_extent: Json | None = Field(default=None, description="STAC's extent, of the items that anybody may see")


class CataloguePending(Entity):
    """An asset whose catalogue entry has still to be written. An orchestrator writes it."""

    __sql_schema__: ClassVar = "catalogue"
    __sql_table__: ClassVar = "pending"
    __sql_primary_key__: ClassVar = ("asset_id",)
    __sql_indexes__: ClassVar = (
        Index("idx_pending_due", ("due_at",)),
        Index("idx_pending_withheld", ("asset_id",), where="withheld"),
    )

    asset_id: Key
    reason: str
    withheld: bool = Field(default=True, description="Nobody sees the present entry until the new one is written")
    attempts: int = Field(default=0, description="Attempts that failed")
    noted_at: Now
    due_at: Now


class ExternalAsset(Entity):
    """An exported asset. The external server knows nothing else of assets."""

    __sql_schema__: ClassVar = "external"
    __sql_table__: ClassVar = "assets"
    __sql_primary_key__: ClassVar = ("asset_id",)
    __sql_functions__: ClassVar = ("external.hide_asset", "external.style_asset")

    asset_id: Key
    revision: int
    platform_id: Annotated[str, Field(max_length=50)]
    title: str
    data_type: Annotated[str, Field(max_length=20)]
    blob_path: Annotated[str, Field(max_length=500)] | None = Field(
        default=None, description="Container and path in the external zone"
    )
    table_name: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="In the schema geo of this database"
    )
    outputs: Json = Field(description="As on the asset; its files are those outside")
    exported_at: Now
