"""An open layer: its declared properties, and its features in batches."""

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
from geomill.vector.facts import Chunk, Format, LayerText, Remark

log = logging.getLogger(__name__)

MOST_REMARKS = 20
GEOJSON_LIMIT = "OGR_GEOJSON_MAX_OBJ_SIZE"
"""An option of GDAL. GDAL's error message names it."""
GIVEN_UP = "interrupted"
"""SQLite's error if GDAL has no memory for a batch of a GeoPackage and stops the query."""


class FeatureBatch(NamedTuple):
    ids: NDArray[np.int64]
    geometry: pa.Array
    """As WKB."""
    attributes: pa.RecordBatch


class Layer(Protocol):
    path: Path
    format: Format
    name: str | None
    rows: int
    geometry_type: str
    """The declared type, such as `3D Multi Polygon`, or `Unknown` if none is declared."""
    crs: str | None
    text: LayerText
    remarks: list[Remark]

    @property
    def schema(self) -> pa.Schema:
        """The schema of the attributes."""
        ...

    def bounds_of_ids(self) -> tuple[int, int]:
        """Return the range that is divided into chunks, see `Chunk`."""
        ...

    def beginning(self, size: int) -> Chunk:
        """Return a chunk of about `size` first rows. It is small because GDAL always reads a chunk to its end."""
        ...

    def batches(self, chunk: Chunk, size: int, columns: Sequence[str] | None = None) -> Iterator[FeatureBatch]: ...


@contextmanager
def read_errors_as_refusals(name: str) -> Iterator[None]:
    """Turn errors of reading the file `name` into refusals, and write GDAL's remarks to the log."""
    try:
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            yield
        for remark in remarks[:MOST_REMARKS]:
            log.warning("%s: %s", name, remark.message)
    except (DataSourceError, DataLayerError, pa.ArrowException, sqlite3.DatabaseError, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a fault of the machine, not of the file
            raise
        if isinstance(error, UnicodeError):
            raise refused(
                "bad_encoding",
                f"'{name}' has text that is not UTF-8, or not in the encoding that it declares: save it as UTF-8, or "
                "give its 'encoding' if it is a Shapefile or CSV",
                encoding=None,
            ) from error
        if GEOJSON_LIMIT in str(error):
            raise refused(
                "geometry_too_large",
                f"'{name}' has a feature with more than about 500,000 points, which takes too much memory as GeoJSON: "
                "split it into parts, or submit it as a GeoPackage",
            ) from error
        if str(error) == GIVEN_UP:
            raise refused(
                "geometry_too_large",
                f"'{name}' does not fit into the worker's memory: split its geometries into parts",
            ) from error
        raise refused("unreadable", f"'{name}' is damaged or incomplete: {without_places(str(error))[:300]}") from error


def refuse_repeated(names: Sequence[str], name: str) -> None:
    repeated = [column for column, count in Counter(names).items() if count > 1]
    if repeated:
        raise refused("repeated_column", f"'{name}' has several columns called '{repeated[0]}': rename one of them")


def binary(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values.cast(pa.binary())
