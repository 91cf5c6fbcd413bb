"""The format of a file, detected from its first megabyte."""

from __future__ import annotations

import json

import pytest

from geomill.vector.facts import Format
from geomill.vector.formats import HEADER_BYTES, detect

FEATURE = {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}


def test_features_in_lines() -> None:
    line = json.dumps(FEATURE).encode()
    assert detect(line + b"\n" + line + b"\n", "places.json") is Format.GEOJSON_LINES
    assert detect(b"\x1e" + line + b"\n", "places.json") is Format.GEOJSON_LINES


def test_one_feature_is_no_line() -> None:
    assert detect(json.dumps(FEATURE).encode(), "place.json") is Format.GEOJSON
    assert detect(json.dumps(FEATURE, indent=1).encode(), "place.json") is Format.GEOJSON


@pytest.mark.parametrize(("name", "expected"), [("coast.ndjson", Format.GEOJSON_LINES), ("coast.json", Format.GEOJSON)])
def test_a_first_line_that_is_longer_than_what_is_looked_at(name: str, expected: Format) -> None:
    ring = [[number % 360 - 180, 0] for number in range(HEADER_BYTES // 4)]
    line = json.dumps({**FEATURE, "geometry": {"type": "LineString", "coordinates": ring}}).encode()
    assert len(line) > HEADER_BYTES
    assert detect(line[:HEADER_BYTES], name) is expected
