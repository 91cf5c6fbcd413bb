from __future__ import annotations

import pytest

from geomill.catalogue.external import blob_path_outside

FILES = [
    {"container": "public", "path": "a/b/_r3/tiles/t.tif"},
    {"container": "public", "path": "a/b/_r3/mosaic.json"},
]


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("cogs/a/b/_r3/mosaic.json", "public/a/b/_r3/mosaic.json"),
        ("cogs/a/b/_r1/mosaic.json", "public/a/b/_r3/mosaic.json"),  # after a rollback
        ("cogs/a/b/_r3/other.tif", None),
        (None, None),
    ],
)
def test_where_the_main_file_lies_outside(inside: str | None, outside: str | None) -> None:
    assert blob_path_outside(inside, FILES) == outside
