"""What of an asset is served: the revision whose outputs are there, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from geomill.domain.assets.asset import DataType
from geomill.domain.states import ApprovalState, ClearanceState


class Scene(BaseModel):
    """What differs between the rasters of a series."""

    blob_path: str
    raster_type: str | None = None
    statistics: list[dict[str, Any]] = []
    bbox: list[float] | None = None
    zoom: int = 0
    """At which it is as fine as a map of the web."""
    rank: int = 0
    """0 lies on top of all others."""


@dataclass(frozen=True, slots=True)
class Series:
    """Rasters that are served one by one and as one picture: by name, from the top to the bottom."""

    scenes: Mapping[str, Scene]

    @property
    def zoom(self) -> int:
        return max((scene.zoom for scene in self.scenes.values()), default=0)


class Served(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    asset_id: str
    platform_id: str
    title: str
    data_type: DataType
    revision: int
    blob_path: str | None = None
    """Container and path."""
    scheme_path: str | None = None
    """Of a mosaic's tiling scheme; beside the mosaic when absent."""
    table_name: str | None = None
    tables: list[dict[str, Any]] = []
    """All of a layer that was split by its kinds of geometry; of others the one."""
    raster_type: str | None = None
    statistics: list[dict[str, Any]] = []
    bbox: list[float] | None = None
    series: bool = False
    """Of rasters. What lies at `blob_path` is a picture of the whole."""
    scene: str = ""
    """Which one of a series of rasters."""
    stac_item_id: str | None = None
    stac_collection_id: str | None = None
    approval_state: ApprovalState = ApprovalState.APPROVED
    clearance_state: ClearanceState = ClearanceState.PUBLIC
    public_revision: int | None = None
    """The revision that anybody may see, which may be another one."""
    withdrawn_through: int = 0

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """What is null in the outputs is as if it were not there."""
        return cls.model_validate({name: value for name, value in row.items() if value is not None})

    @property
    def public(self) -> bool:
        return self.public_revision == self.revision

    @property
    def name(self) -> str:
        """In addresses."""
        return f"{self.asset_id}.{self.scene}" if self.scene else self.asset_id

    @property
    def mosaic(self) -> bool:
        return bool(self.blob_path and self.blob_path.endswith(("/mosaic.json", "_mosaic.json")))

    @property
    def layers(self) -> dict[str, str]:
        """Tables by part. The main one has no name; those beside it are called by the ending of theirs."""
        if self.table_name is None:
            return {}
        others = sorted({table["table_name"] for table in self.tables} - {self.table_name})
        return {"": self.table_name, **{part_of(name, self.table_name): name for name in others}}

    def one(self, name: str, scene: Scene) -> Self:
        """A scene of a series. It has the visibility of the series."""
        facts = scene.model_dump(include={"blob_path", "raster_type", "statistics", "bbox"})
        item = f"{self.stac_item_id}.{name}" if self.stac_item_id else None
        return self.model_copy(update={"scene": name, "series": False, "stac_item_id": item, **facts})


def part_of(table_name: str, main: str) -> str:
    return table_name.removeprefix(f"{main}_")
