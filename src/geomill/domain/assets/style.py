"""Styles: named ways to draw an asset. A style is kept with the asset, over all its revisions.

A raster's style is a set of parameters of TiTiler, under the names of STAC's render extension. A vector's style has
colours and widths, and may classify the features by one attribute.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from geomill.domain.entity import Entity, ForeignKey, Index, Json, Key, Now, Subject
from geomill.errors import NotFoundError

AUTOMATIC = "automatic"
"""The name of the style that geomill computes from the data."""
DEFAULT = "default"
"""The name that leads to the default style, whatever its own name is."""
DRAWING = ("bidx", "expression", "rescale", "colormap", "colormap_name", "color_formula", "algorithm")
"""Parameters of a request that say how to draw a raster."""
RESERVED = (AUTOMATIC, DEFAULT)
MOST_STYLES = 32
MOST_ENTRIES = 256
LARGEST_STYLE = 60_000
"""The largest style as JSON, in bytes."""
STYLE_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
_COLOR = re.compile(r"#[0-9a-f]{6}([0-9a-f]{2})?")


def _color(value: Any) -> Any:
    """Return a colour as `#rrggbb` or `#rrggbbaa`. TiTiler's lists of numbers are understood, too."""
    if isinstance(value, list | tuple) and len(value) in (3, 4) and all(isinstance(part, int) for part in value):
        if not all(0 <= part <= 255 for part in value):
            raise ValueError("the parts of a colour go from 0 to 255")
        value = "#" + "".join(f"{part:02x}" for part in value)
    if not isinstance(value, str) or not _COLOR.fullmatch(value.lower()):
        raise ValueError("a colour is written as #rrggbb or #rrggbbaa, or as a list of three or four numbers")
    return value.lower()


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("the number must be finite")
    return value


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("the text has a NUL character")
    return text


Color = Annotated[str, BeforeValidator(_color)]
Number = Annotated[float, AfterValidator(_finite)]
Label = Annotated[str, Field(max_length=200), AfterValidator(_plain)]
Opacity = Annotated[float, Field(ge=0, le=1)]
Width = Annotated[float, Field(ge=0, le=100)]


def rgba(color: str) -> tuple[int, int, int, int]:
    """Return the parts of a colour from 0 to 255."""
    parts = [int(color[place : place + 2], 16) for place in range(1, len(color), 2)]
    return parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else 255


class StylePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RampStop(StylePart):
    """A value and its colour. Colours between two stops are mixed."""

    value: Number
    color: Color
    label: Label | None = None


class StyleClass(StylePart):
    """The colour of one value, or of all values from `minimum` to below `maximum`."""

    value: Number | bool | Label | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    color: Color
    label: Label | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        ranged = self.minimum is not None or self.maximum is not None
        if ranged == (self.value is not None):
            raise ValueError("a class has either a value, or minimum or maximum")
        if self.minimum is not None and self.maximum is not None and self.minimum >= self.maximum:
            raise ValueError(f"the minimum {self.minimum:g} of a class must be below its maximum {self.maximum:g}")
        return self

    @property
    def text(self) -> str:
        """The text of the legend."""
        if self.label:
            return self.label
        if self.value is not None:
            return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        low = "" if self.minimum is None else f"{self.minimum:g}"
        high = "" if self.maximum is None else f"{self.maximum:g}"
        return f"{low} to {high}" if low and high else f"from {low}" if low else f"below {high}"


class StyleResampling(StrEnum):
    NEAREST = "nearest"
    BILINEAR = "bilinear"
    CUBIC = "cubic"
    AVERAGE = "average"
    MODE = "mode"


class RasterStyle(StylePart):
    """How to draw a raster. Without `rescale`, values that do not fit into eight bits are stretched by the data."""

    kind: Literal["raster"] = "raster"
    title: Label | None = None
    opacity: Opacity = Field(default=1.0, description="Opacity of the whole picture; it multiplies all other opacities")
    bidx: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=4)] | None = Field(
        default=None, description="Bands, counted from 1. Without, natural colours, or the first band if it has colours"
    )
    expression: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_plain)] | None = Field(
        default=None, description="Formula of bands, as in TiTiler: (b4-b3)/(b4+b3)"
    )
    rescale: Annotated[list[tuple[Number, Number]], Field(min_length=1, max_length=4)] | None = None
    colormap_name: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")] | None = None
    colormap: Annotated[dict[Annotated[int, Field(ge=0, le=255)], Color], Field(max_length=MOST_ENTRIES)] | None = (
        Field(default=None, description="Colours of values, after they were rescaled")
    )
    ramp: Annotated[list[RampStop], Field(min_length=2, max_length=MOST_ENTRIES)] | None = Field(
        default=None, description="Values of the data with their colours, mixed in between"
    )
    classes: Annotated[list[StyleClass], Field(min_length=1, max_length=MOST_ENTRIES)] | None = Field(
        default=None, description="Values or ranges of the data with their colours; other values are not drawn"
    )
    nodata: Number | None = None
    resampling: StyleResampling | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.bidx and self.expression:
            raise ValueError("bidx and expression exclude each other")
        _one_of(self, ("colormap_name", "colormap", "ramp", "classes"))
        if self.rescale and (self.ramp or self.classes):
            raise ValueError("ramp and classes have values of the data, so rescale does not go with them")
        if any(low >= high for low, high in self.rescale or ()):
            raise ValueError("each pair of rescale needs the lower number first")
        colored = self.colormap_name or self.colormap or self.ramp or self.classes
        if colored and (self.channels or 1) != 1:
            raise ValueError(f"colours need one band, and the style has {self.channels}")
        if self.rescale and len(self.rescale) not in (1, self.channels or len(self.rescale)):
            raise ValueError(f"rescale needs one pair, or one for each of the {self.channels} bands")
        if self.expression and not (self.rescale or self.ramp or self.classes):
            raise ValueError("an expression needs rescale, ramp or classes")
        values = [stop.value for stop in self.ramp or ()]
        if values != sorted(set(values)):
            raise ValueError("the values of ramp must rise")
        if any(isinstance(entry.value, str | bool) for entry in self.classes or ()):
            raise ValueError("the classes of a raster have numbers")
        return self

    @property
    def has_colors(self) -> bool:
        """Whether the style says what to draw. If not, the data decides, and the style changes only the rest."""
        return any(
            (self.bidx, self.expression, self.rescale, self.colormap_name, self.colormap, self.ramp, self.classes)
        )

    @property
    def channels(self) -> int:
        """The number of bands of the picture. 0 if the data decides."""
        return len(self.expression.split(";")) if self.expression else len(self.bands)

    @property
    def bands(self) -> tuple[int, ...]:
        """The bands to read. Empty if the data or the expression decides."""
        if self.bidx or self.expression:
            return tuple(self.bidx or ())
        return (1,) if self.colormap_name or self.colormap or self.ramp or self.classes else ()


class VectorStyle(StylePart):
    """How to draw features. A class replaces the colour of the features that it is for."""

    kind: Literal["vector"] = "vector"
    title: Label | None = None
    opacity: Opacity = Field(default=1.0, description="Opacity of the whole picture; it multiplies all other opacities")
    fill_color: Color = "#2a78b8"
    fill_opacity: Opacity = 0.5
    line_color: Color = "#17456b"
    line_width: Width = 1.5
    line_opacity: Opacity = 1.0
    circle_color: Color = "#2a78b8"
    circle_radius: Width = 4.0
    circle_opacity: Opacity = 1.0
    attribute: Annotated[str, Field(min_length=1, max_length=63), AfterValidator(_plain)] | None = Field(
        default=None, description="The column that the classes are about"
    )
    classes: Annotated[list[StyleClass], Field(max_length=MOST_ENTRIES)] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.classes) != (self.attribute is not None):
            raise ValueError("attribute and classes go together")
        if len({entry.value is None for entry in self.classes}) > 1:
            raise ValueError("the classes have either values or ranges, not both")
        return self


StyleDocument = Annotated[RasterStyle | VectorStyle, Field(discriminator="kind")]
STYLE: TypeAdapter[RasterStyle | VectorStyle] = TypeAdapter(StyleDocument)


def _valid(documents: Mapping[str, Any]) -> dict[str, RasterStyle | VectorStyle]:
    styles = {}
    for name, document in list(documents.items())[: 2 * MOST_STYLES]:
        with suppress(ValidationError):
            styles[name] = STYLE.validate_python(document)
    return styles


def _one_of(model: BaseModel, names: Iterable[str]) -> None:
    present = [name for name in names if getattr(model, name) is not None]
    if len(present) > 1:
        raise ValueError(f"{' and '.join(present)} exclude each other")


class AssetStyle(Entity):
    """A named style of an asset. At most one of them is the default."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "asset_styles"
    __sql_primary_key__: ClassVar = ("asset_id", "name")
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (Index("idx_asset_styles_default", ("asset_id",), unique=True, where="is_default"),)

    asset_id: Key
    name: Annotated[str, Field(max_length=63)]
    is_default: bool = False
    style: Json = Field(description="A `RasterStyle` or `VectorStyle`")
    updated_by: Subject
    updated_at: Now

    @property
    def document(self) -> RasterStyle | VectorStyle:
        return STYLE.validate_python(self.style)


class StyleBook(BaseModel):
    """The styles of an asset as the servers use them."""

    model_config = ConfigDict(frozen=True)

    default: str | None = None
    styles: Mapping[str, StyleDocument] = {}
    tag: str = Field(default="", exclude=True, description="Changes with the styles")

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> Self:
        """Return the book of several stored ones, of which the later ones win. Styles that are not valid are left out,
        because a workflow may have returned anything."""
        default: str | None = None
        styles: dict[str, RasterStyle | VectorStyle] = {}
        for layer in layers:
            documents = layer.get("styles") if layer else None
            styles |= _valid(documents) if isinstance(documents, dict) else {}
            default = (layer or {}).get("default") or default
        text = json.dumps(layers, sort_keys=True) if styles else ""
        tag = hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""
        return cls(default=default if default in styles else None, styles=styles, tag=tag)

    def find(self, name: str | None) -> RasterStyle | VectorStyle | None:
        """Return a style by its name. None is the one that geomill computes. Raises `NotFoundError`."""
        if name in (None, "", DEFAULT):
            return self.chosen
        if name == AUTOMATIC:
            return None
        if name not in self.styles:
            names = [*self.styles, *RESERVED]
            raise NotFoundError(f"the asset has no style '{str(name)[:64]}'", remedy=f"use one of {', '.join(names)}")
        return self.styles[name]

    @property
    def chosen(self) -> RasterStyle | VectorStyle | None:
        """The default style. None if geomill computes it."""
        return self.styles.get(self.default) if self.default else None
