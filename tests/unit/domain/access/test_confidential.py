from __future__ import annotations

import pytest

from geomill.domain.access.confidential import new_reference, without_places


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`/srv/scratch/geomill-0/a-b/data.gpkg' not recognized", "`…' not recognized"),
        ("/vsimem/1-2/x.tif: band 1: IReadBlock failed", "…: band 1: IReadBlock failed"),
        ("cannot open '/var/lib/geomill/x y.tif'", "cannot open '… y.tif'"),
        ("GET https://account.blob.core.windows.net/c/x?sig=1 failed", "GET … failed"),
        ("postgresql://u:p@db:5432/x is away", "… is away"),
        ("'bronze/uploads/a.tif' is damaged", "'bronze/uploads/a.tif' is damaged"),
        ("it answered 503 Service Unavailable", "it answered 503 Service Unavailable"),
        ("ratio 1/2 and km/h and a/b/c stay", "ratio 1/2 and km/h and a/b/c stay"),
    ],
)
def test_folders_and_addresses_are_left_out(text: str, expected: str) -> None:
    assert without_places(text) == expected


def test_references_differ() -> None:
    assert len({new_reference() for _ in range(100)}) == 100
