"""The rules for a raster's type, encoding, date and file names."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.datasets.times import times
from geomill.raster.detection import detect
from geomill.raster.facts import BandFacts, RasterFacts, RasterType, Validity
from geomill.raster.plan import stem
from geomill.raster.tiers import QUICK, THOROUGH, Resampling, Tier, check_tier, creation_options, resampling_for
from geomill.sdk import HandlerError


def facts(count: int = 1, dtype: str = "uint8", low: float = 0, high: float = 200, **fields: Any) -> RasterFacts:
    defaults = {
        "driver": "GTiff", "width": 100, "height": 100, "crs": "EPSG:4326", "transform": (1, 0, 0, 0, -1, 0),
        "bounds_4326": (0, 0, 1, 1), "block": (128, 128), "tiled": True, "uncompressed_bytes": 1,
        "bands": [BandFacts(minimum=low, maximum=high)] * count,
    }  # fmt: skip
    return RasterFacts(count=count, dtype=dtype, **{**defaults, **fields})


@pytest.mark.parametrize(
    ("raster_facts", "distinct", "kind"),
    [
        (facts(3), 250, RasterType.RGB),
        (facts(3, "uint16"), 250, RasterType.RGB),
        (facts(4, validity=Validity.ALPHA), 250, RasterType.RGBA),
        (facts(4), 250, RasterType.NIR),
        (facts(8, "uint16"), 250, RasterType.MULTISPECTRAL),
        (facts(3, "float32"), 250, RasterType.MULTISPECTRAL),
        (facts(1, palette=True), 250, RasterType.CATEGORICAL),
        (facts(1, bits=1), 2, RasterType.CATEGORICAL),
        (facts(1), 12, RasterType.CATEGORICAL),
        (facts(1), 200, RasterType.SINGLE_BAND),
        (facts(2, validity=Validity.ALPHA), 200, RasterType.SINGLE_BAND),
        (facts(1, "int16", -40, 3000), 900, RasterType.DEM),
        (facts(1, "float32", 10.5, 2900.0), 900, RasterType.DEM),
        (facts(1, "float32", -0.4, 0.9), 900, RasterType.INDEX),
        (facts(1, "float32", 0, 1e6), 900, RasterType.CONTINUOUS),
    ],
)
def test_the_type_is_found(raster_facts: RasterFacts, distinct: int, kind: RasterType) -> None:
    assert detect(raster_facts, distinct) is kind


def test_a_name_helps() -> None:
    assert detect(facts(1, "uint16"), 900, ["Harare DEM"]) is RasterType.DEM
    assert detect(facts(1, "uint16"), 900, ["Academy"]) is RasterType.SINGLE_BAND


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(RasterType.DEM, "float32"), (RasterType.CATEGORICAL, "uint8"), (RasterType.RGB, "uint16")],
)
def test_jpeg_is_refused_for_what_it_would_ruin(kind: RasterType, dtype: str) -> None:
    with pytest.raises(HandlerError) as caught:
        check_tier(Tier.VISUALIZATION, kind, dtype)
    assert caught.value.error_code == "tier_unfit"
    assert not caught.value.retryable
    check_tier(Tier.ANALYSIS, kind, dtype)


def test_classes_are_never_mixed() -> None:
    for requested in Resampling:
        assert resampling_for(RasterType.CATEGORICAL, requested) is Resampling.NEAREST
    assert resampling_for(RasterType.DEM, Resampling.AUTO) is Resampling.BILINEAR
    assert resampling_for(RasterType.DEM, Resampling.CUBIC) is Resampling.CUBIC
    assert creation_options(Tier.ANALYSIS, RasterType.CATEGORICAL, "uint8", None)["OVERVIEW_RESAMPLING"] == "MODE"


def test_no_date_is_invented() -> None:
    received = "2026-01-02T03:04:05+00:00"
    assert times("2024-04-17", None, None, None, received)[0].datetime == "2024-04-17T00:00:00Z"
    assert times(None, None, None, "2020-01-01T10:00:00+02:00", received)[0].datetime == "2020-01-01T08:00:00Z"
    period, warnings = times(None, None, None, "some day", received)
    assert period.datetime is None
    assert (period.start_datetime, period.end_datetime) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z")
    assert period.known_from == "received"
    assert len(warnings) == 1


@pytest.mark.parametrize("dates", [("yesterday", None, None), (None, "2024-01-01", None)])
def test_a_wrong_date_is_refused(dates: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(HandlerError, match=r"date|together"):
        times(*dates, None, "2026-01-02T03:04:05+00:00")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b/Ärger im Büro.tif", "rger-im-B-ro"), ("x.tar.gz", "x-tar"), ("plain", "plain"), ("...tif", "raster")],
)
def test_the_stem_of_a_file_is_plain(name: str, expected: str) -> None:
    assert stem(name) == expected


@pytest.mark.parametrize(
    ("kind", "dtype", "bits", "level"),
    [
        (RasterType.RGB, "uint8", None, QUICK),
        (RasterType.MULTISPECTRAL, "uint16", None, QUICK),
        (RasterType.DEM, "int16", None, QUICK),
        (RasterType.DEM, "float32", None, THOROUGH),
        (RasterType.CATEGORICAL, "uint8", None, THOROUGH),
        (RasterType.SINGLE_BAND, "uint8", 1, THOROUGH),
    ],
)
def test_what_repeats_itself_is_compressed_thoroughly(
    kind: RasterType, dtype: str, bits: int | None, level: int
) -> None:
    assert creation_options(Tier.ANALYSIS, kind, dtype, bits)["LEVEL"] == level
