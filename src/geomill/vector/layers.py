"""A layer that is open: what it declares, and its features in batches."""

from __future__ import annotations

import logging
import sqlite3
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyogrio.errors import DataLayerError, DataSourceError

from geomill.datasets.refusals import refused
from geomill.domain.access.confidential import without_places
from geomill.vector.facts import Chunk, Format

log = logging.getLogger(__name__)

MOST_REMARKS = 20
GEOJSON_LIMIT = "OGR_GEOJSON_MAX_OBJ_SIZE"
"""GDAL's option; its error names it."""
GIVEN_UP = "interrupted"
"""What SQLite says where GDAL gets no memory for a batch of a GeoPackage, and stops it."""


class FeatureBatch(NamedTuple):
    ids: NDArray[np.int64]
    geometry: pa.Array
    """WKB."""
    attributes: pa.RecordBatch


class Layer(Protocol):
    path: Path
    format: Format
    name: str | None
    rows: int
    geometry_type: str
    """As it declares it, such as `3D Multi Polygon`; `Unknown` if it does not."""
    crs: str | None

    @property
    def schema(self) -> pa.Schema:
        """Of the attributes."""
        ...

    def bounds_of_ids(self) -> tuple[int, int]:
        """From where to where chunks are cut: see `Chunk`."""
        ...

    def beginning(self, size: int) -> Chunk:
        """The first rows, about so many. GDAL reads a chunk to its end, even if it is left before."""
        ...

    def batches(self, chunk: Chunk, size: int, columns: Sequence[str] | None = None) -> Iterator[FeatureBatch]: ...


@contextmanager
def told(name: str) -> Iterator[None]:
    """Trouble with the file becomes an error that says so. GDAL's remarks go to the log."""
    try:
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            yield
        for remark in remarks[:MOST_REMARKS]:
            log.warning("%s: %s", name, remark.message)
    except (DataSourceError, DataLayerError, pa.ArrowException, sqlite3.DatabaseError, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the machine's trouble, not the file's
            raise
        if GEOJSON_LIMIT in str(error):
            raise refused(
                "geometry_too_large",
                f"'{name}' has a feature of more than some 500,000 points, for which GeoJSON takes too much memory: "
                "cut it into parts, or give it as a GeoPackage",
            ) from error
        if str(error) == GIVEN_UP:
            raise refused(
                "geometry_too_large",
                f"'{name}' does not fit into the worker's memory: cut its geometries into parts",
            ) from error
        raise refused("unreadable", f"'{name}' is damaged or incomplete: {without_places(str(error))[:300]}") from error


def refuse_repeated(names: Sequence[str], name: str) -> None:
    repeated = [one for one, count in Counter(names).items() if count > 1]
    if repeated:
        raise refused("repeated_column", f"'{name}' has several columns called '{repeated[0]}': rename one of them")


def binary(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values.cast(pa.binary())
