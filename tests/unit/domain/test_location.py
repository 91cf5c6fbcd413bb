"""Where a zone may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomill.domain.location import AzureAccount, Folder, S3Bucket, parse_location
from geomill.errors import InvalidName


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/srv/bronze", Folder(Path("/srv/bronze"))),
        ("data/bronze", Folder(Path("data/bronze"))),
        ("az://geodata", AzureAccount("geodata")),
        ("az://geodata/geomill/", AzureAccount("geodata", "geomill")),
        ("s3://geo-data", S3Bucket("geo-data")),
        ("s3://geo-data/a/b", S3Bucket("geo-data", "a/b")),
    ],
)
def test_locations(text: str, expected: object) -> None:
    assert parse_location(text) == expected
    assert parse_location(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "http://x/y",
        "file:///srv",
        "az://",
        "az://Upper",
        "az://key@account",
        "s3://",
        "s3://a/../b",
        "s3://key:secret@bucket",
        "/vsis3/bucket",
        "AccountName=x;AccountKey=secret",
    ],
)
def test_what_is_no_location_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        parse_location(text)
    assert "secret" not in str(caught.value)
    assert caught.value.remedy
