"""The served part of an asset: its served revision and the places of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from geomill.domain.assets.asset import DataType
from geomill.domain.assets.metadata import DatasetMetadata
from geomill.domain.assets.style import StyleBook
from geomill.domain.states import ApprovalState, ClearanceState


class Scene(BaseModel):
    """One raster of a series, with the facts that differ between them."""

    blob_path: str
    raster_type: str | None = None
    statistics: list[dict[str, Any]] = []
    bbox: list[float] | None = None
    zoom: int = 0
    """The zoom level of a web map at which the scene has its full resolution."""
    rank: int = 0
    """The order in the picture of the series. 0 is on top."""


@dataclass(frozen=True, slots=True)
class Series:
    """Rasters that are served one by one and as one picture. The scenes are by name, from top to bottom."""

    scenes: Mapping[str, Scene]

    @property
    def zoom(self) -> int:
        return max((scene.zoom for scene in self.scenes.values()), default=0)


class Served(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    asset_id: str
    platform_id: str
    title: str
    metadata: DatasetMetadata = DatasetMetadata()
    data_type: DataType
    revision: int
    blob_path: str | None = None
    """Container and path of the raster."""
    scheme_path: str | None = None
    """Path of a mosaic's tiling scheme. If absent, the scheme lies beside the mosaic."""
    table_name: str | None = None
    tables: list[dict[str, Any]] = []
    """The tables of the layer: several if it was split by type of geometry, otherwise one."""
    raster_type: str | None = None
    statistics: list[dict[str, Any]] = []
    bbox: list[float] | None = None
    series: bool = False
    """Whether the asset is a series of rasters. `blob_path` is then a picture of the whole series."""
    scene: str = ""
    """The name of the scene, if this is one scene of a series."""
    stac_item_id: str | None = None
    stac_collection_id: str | None = None
    approval_state: ApprovalState = ApprovalState.APPROVED
    clearance_state: ClearanceState = ClearanceState.PUBLIC
    public_revision: int | None = None
    """The revision that everybody may see. It may differ from the served revision."""
    withdrawn_through: int = 0
    styles: StyleBook = StyleBook()

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """Build the model from a row. Null values count as absent."""
        fields = {name: value for name, value in row.items() if value is not None}
        styles = StyleBook.of(fields.pop("source_styles", None), fields.pop("own_styles", None))
        metadata = DatasetMetadata.stored(fields.pop("metadata", None))
        return cls.model_validate({**fields, "styles": styles, "metadata": metadata})

    @property
    def public(self) -> bool:
        return self.public_revision == self.revision

    @property
    def name(self) -> str:
        """The name in URLs."""
        return f"{self.asset_id}.{self.scene}" if self.scene else self.asset_id

    @property
    def mosaic(self) -> bool:
        return bool(self.blob_path and self.blob_path.endswith(("/mosaic.json", "_mosaic.json")))

    @property
    def layers(self) -> dict[str, str]:
        """Tables by part. The part of the main table is empty; that of another table is the end of its name."""
        if self.table_name is None:
            return {}
        others = sorted({table["table_name"] for table in self.tables} - {self.table_name})
        return {"": self.table_name, **{part_of(name, self.table_name): name for name in others}}

    def one(self, name: str, scene: Scene) -> Self:
        """Return a scene of the series. It has the visibility of the series."""
        facts = scene.model_dump(include={"blob_path", "raster_type", "statistics", "bbox"})
        item = f"{self.stac_item_id}.{name}" if self.stac_item_id else None
        return self.model_copy(update={"scene": name, "series": False, "stac_item_id": item, **facts})


def part_of(table_name: str, main: str) -> str:
    return table_name.removeprefix(f"{main}_")
