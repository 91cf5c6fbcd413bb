"""Opens a layer by the one reader for its format."""

from __future__ import annotations

from pathlib import Path

from geomill.vector.facts import Format, Reading
from geomill.vector.layers import Layer, told
from geomill.vector.ogr_layer import OgrLayer
from geomill.vector.parquet_layer import ParquetLayer


def open_layer(path: Path, found: Format, name: str, reading: Reading) -> Layer:
    with told(name):
        if found is Format.GEOPARQUET:
            return ParquetLayer.opened(path, name)
        return OgrLayer.opened(path, found, name, reading)
