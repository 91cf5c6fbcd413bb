"""The order of axes, and the names of reference systems."""

from __future__ import annotations

import pytest

from geomill.errors import UnknownReferenceSystem
from geomill.serve.vector.crs import CRS84, CRS84_HEIGHT, Systems, axes, box_in_degrees, named

EPSG = "http://www.opengis.net/def/crs/EPSG/0/"


@pytest.mark.parametrize(
    ("code", "swapped"),
    [
        *[(4326, True), (3857, False), (32633, False), (31467, True), (3035, True), (2193, True)],
        *[(3031, False), (3413, False), (5041, False), (32661, True)],  # of the poles: both axes point the same way
    ],
)
def test_axes_are_turned_where_north_is_first(code: int, swapped: bool) -> None:
    assert axes(f"{EPSG}{code}") == (code, swapped)


@pytest.mark.parametrize("code", [5773, 4978, 999_999])
def test_what_is_no_map_is_not_known(code: int) -> None:
    """A system of heights alone, a geocentric one, and one that does not exist."""
    assert axes(f"{EPSG}{code}") is None
    with pytest.raises(UnknownReferenceSystem, match=f"'EPSG:{code}' is not a known reference system"):
        Systems(4326).chosen(f"EPSG:{code}")
    assert Systems(code).storage is None
    assert f"{EPSG}{code}" not in Systems(code).offered


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("EPSG:3857", f"{EPSG}3857"),
        ("[EPSG:3857]", f"{EPSG}3857"),
        ("https://www.opengis.net/def/crs/EPSG/9.9.1/3857", f"{EPSG}3857"),
        ("https://www.opengis.net/def/crs/OGC/1.3/CRS84", CRS84),
        ("OGC:CRS84h", CRS84_HEIGHT),
        ("urn:ogc:def:crs:EPSG::3857", None),
        ("3857", None),
    ],
)
def test_a_system_has_one_name(text: str, uri: str | None) -> None:
    assert named(text) == uri


async def test_a_box_with_heights_is_one_in_degrees() -> None:
    assert await box_in_degrees("1,2,0,3,4,9", CRS84_HEIGHT) == [1, 2, 0, 3, 4, 9]
    assert await box_in_degrees("2,1,4,3", "EPSG:4326") == pytest.approx([1, 2, 3, 4])
