"""Styles beside a source: the first that can be converted is the default, and any other is a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomill.datasets.source_styles import LARGEST_FILE, chosen_style, styles_beside
from geomill.domain.assets.style import StyleBook
from geomill.domain.objectname import LONGEST_SEGMENT
from geomill.raster.facts import BandFacts, RasterFacts
from geomill.raster.source_styles import read_styles
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import folder_storage

SOURCE = ObjectName(Zone.BRONZE, "uploads", "a/dem.v1.tif")
ENTRIES = '<ColorMapEntry color="#000000" quantity="0"/><ColorMapEntry color="#ff00ff" quantity="1000"/>'
SLD = f"<Sld><RasterSymbolizer><ColorMap>{ENTRIES}</ColorMap></RasterSymbolizer></Sld>"
GREY = '<qgis><rasterrenderer type="singlebandgray" grayBand="{}"><title>é</title></rasterrenderer></qgis>'
BOMB = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
FACTS = RasterFacts(
    driver="GTiff", width=9, height=9, count=1, dtype="float32", crs="EPSG:4326", transform=(1, 0, 0, 0, -1, 0),
    bounds_4326=(0, 0, 9, 9), block=(9, 9), tiled=True, uncompressed_bytes=324, bands=[BandFacts()],
)  # fmt: skip


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path)


def put(storage: Storage, name: str, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    storage.sync.put_bytes(ObjectName(Zone.BRONZE, "uploads", name), data)


def test_a_style_of_the_same_name_is_the_default(storage: Storage) -> None:
    put(storage, "a/dem.v1.sld", SLD)
    put(storage, "a/dem.qml", GREY.format(1))
    put(storage, "dem.v1.qml", GREY.format(1))
    styles, warnings = read_styles(storage, SOURCE, FACTS)
    book = StyleBook.of(styles.model_dump())
    assert (book.default, list(book.styles), warnings) == ("source", ["source"], [])
    assert book.chosen
    assert book.chosen.title == "dem.v1"
    assert [stop["color"] for stop in styles.styles["source"]["ramp"]] == ["#000000", "#ff00ff"]


def test_nothing_beside_is_no_style(storage: Storage) -> None:
    styles, warnings = read_styles(storage, SOURCE, FACTS)
    assert (styles.model_dump(), warnings) == ({"default": None, "styles": {}}, [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no xml", "is not XML"),
        (BOMB, "no entities"),
        (OUTSIDE, "no entities"),
        (OUTSIDE.encode("utf-16"), "no entities"),
        (b"\xff\xfe\x00", "is not XML"),
        (b"<a>\xe9\x00</a>", "is not XML"),
        (b" " * (LARGEST_FILE + 1), "1,600,001 bytes"),
        ("<qgis/>", "no renderer"),
        (GREY.format(2), "it needs band 2, and the raster has 1"),
        (GREY.format("inf"), "no grayBand"),
        ('<qgis><renderer-v2 type="singleSymbol"><symbols><symbol/></symbols></renderer-v2></qgis>', "vector layer"),
    ],
)
def test_a_style_that_cannot_be_used_is_a_warning_and_the_next_one_counts(
    storage: Storage, text: str | bytes, reason: str
) -> None:
    put(storage, "a/dem.v1.qml", text)
    styles, [warning] = read_styles(storage, SOURCE, FACTS)
    assert styles.default is None
    assert warning.startswith("the style 'dem.v1.qml' is not used: ")
    assert reason in warning
    put(storage, "a/dem.v1.sld", SLD)
    styles, warnings = read_styles(storage, SOURCE, FACTS)
    assert (styles.default, len(warnings)) == ("source", 1)


def test_a_style_of_scaled_values_is_not_used(storage: Storage) -> None:
    put(storage, "a/dem.v1.sld", SLD)
    scaled = FACTS.model_copy(update={"bands": [BandFacts(scale=0.1)]})
    styles, [warning] = read_styles(storage, SOURCE, scaled)
    assert (styles.default, "stores scaled values" in warning) == (None, True)


def test_a_latin_style_is_read(storage: Storage) -> None:
    put(storage, "a/dem.v1.qml", GREY.format(1).encode("cp1252"))
    assert chosen_style(styles_beside(storage, SOURCE), lambda style: (style, []))[0].default == "source"


def test_a_name_that_is_too_long_with_the_ending_has_no_style(storage: Storage) -> None:
    longest = ObjectName(Zone.BRONZE, "uploads", "y" * LONGEST_SEGMENT)
    assert list(styles_beside(storage, longest)) == []
