from __future__ import annotations

import pytest
from pyproj import CRS

from geomill.domain.crs import LONGEST_WKT, check_crs, is_crs
from geomill.errors import InputError

NAMED = [
    "EPSG:4326",
    "epsg:3857",
    "EPSG:4326+5773",
    "OGC:CRS84",
    "ESRI:54009",
    "IAU_2015:30100",
    "urn:ogc:def:crs:EPSG::32633",
    "urn:ogc:def:crs:OGC:1.3:CRS84",
    "urn:x-ogc:def:crs:EPSG:6.9:4326",
]
REFUSED = [
    "",
    "http://127.0.0.1:9/x",
    "https://epsg.io/4326.wkt",
    "HTTP://127.0.0.1:9/x",
    " http://127.0.0.1:9/x",
    "/vsicurl/http://127.0.0.1:9/x",
    "/etc/passwd",
    "file:///etc/passwd",
    "crs.wkt",
    "DICT:/etc/passwd,1",
    "+proj=longlat +nadgrids=http://127.0.0.1:9/x",
    "+init=epsg:4326",
    '{"type": "GeographicCRS"}',
    "EPSG:4326\n",
    "EPSG:http://127.0.0.1",
    "EPSG:../../x",
    "SOMEBODY:1",
    "urn:ogc:def:crs:http://127.0.0.1:9/x",
    "urn:ogc:def:crs:EPSG::4326/../x",
    "PROJCS",
    "PROJCS http://127.0.0.1:9/x",
    "WGS84",
    "4326",
]


@pytest.mark.parametrize("text", NAMED)
def test_names_by_an_authority_are_taken(text: str) -> None:
    assert check_crs(text, "target_crs") == text


@pytest.mark.parametrize("code", [4326, 3857, 32633, 3035, 2056, 5773, 7415, 4978])
def test_the_wkt_of_every_version_is_taken(code: int) -> None:
    for version in ("WKT1_GDAL", "WKT2_2015", "WKT2_2019", "WKT2_2019_SIMPLIFIED"):
        try:
            text = CRS.from_epsg(code).to_wkt(version, pretty=True)
        except Exception:  # noqa: BLE001  not each system can be written in each version
            continue
        assert is_crs(text), text[:80]


@pytest.mark.parametrize("text", REFUSED)
def test_what_could_be_fetched_or_read_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="target_crs"):
        check_crs(text, "target_crs")


def test_wkt_has_a_limit() -> None:
    assert not is_crs('GEOGCS["' + "x" * LONGEST_WKT + '"]')
