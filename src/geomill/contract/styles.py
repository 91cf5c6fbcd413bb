"""Requests and responses about styles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from geomill.contract.inputs import ApiInput
from geomill.domain.assets.foreign_xml import LONGEST
from geomill.domain.assets.style import RasterStyle, StyleDocument, VectorStyle


class NewStyle(ApiInput):
    """A style to be kept with an asset."""

    style: StyleDocument | None = None
    qml: Annotated[str, Field(max_length=LONGEST)] | None = Field(default=None, description="A style of QGIS, instead")
    sld: Annotated[str, Field(max_length=LONGEST)] | None = Field(default=None, description="A style in SLD, instead")
    default: bool = Field(default=False, description="Whether the asset is drawn with it when no style is named")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(value is not None for value in (self.style, self.qml, self.sld)) != 1:
            raise ValueError("give one of style, qml and sld")
        return self


class LegendEntry(BaseModel):
    text: str
    color: str


class StyleView(BaseModel):
    """A style of an asset."""

    name: str
    default: bool
    origin: Literal["person", "source", "computed"] = Field(
        description="`source`: it came with the data. `computed`: geomill draws by the data itself"
    )
    title: str | None = None
    style: RasterStyle | VectorStyle | None = Field(default=None, description="Null if it is computed")
    legend: list[LegendEntry] = []
    maplibre: list[dict[str, Any]] = Field(default=[], description="Layers of MapLibre, if the asset is a vector")
    updated_by: str | None = None
    updated_at: datetime | None = None
    warnings: list[str] = []


class StylesView(BaseModel):
    asset_id: str
    default: str = Field(description="The name of the style that is used when none is named")
    styles: list[StyleView]
