"""A layer whose points have latitude before longitude, read the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from geomill.vector.facts import Chunk, Format, LayerText, Remark
from geomill.vector.layers import FeatureBatch, Layer


@dataclass
class SwappedLayer:
    inner: Layer

    def __post_init__(self) -> None:
        inner = self.inner
        self.path: Path = inner.path
        self.format: Format = inner.format
        self.name: str | None = inner.name
        self.rows: int = inner.rows
        self.geometry_type: str = inner.geometry_type
        self.crs: str | None = inner.crs
        self.text: LayerText = inner.text
        self.remarks: list[Remark] = inner.remarks
        self.schema: pa.Schema = inner.schema

    def bounds_of_ids(self) -> tuple[int, int]:
        return self.inner.bounds_of_ids()

    def beginning(self, size: int) -> Chunk:
        return self.inner.beginning(size)

    def batches(self, chunk: Chunk, size: int, columns: Sequence[str] | None = None) -> Iterator[FeatureBatch]:
        for batch in self.inner.batches(chunk, size, columns):
            yield batch._replace(geometry=_swapped(batch.geometry))


def _swapped(wkb: pa.Array) -> pa.Array:
    """Exchange x and y. A geometry that cannot be read stays as it is, and is counted as such later."""
    values = wkb.to_numpy(zero_copy_only=False)
    geometries = shapely.from_wkb(values, on_invalid="ignore")
    flat = shapely.transform(geometries, _exchange, include_z=False)
    deep = shapely.has_z(geometries)
    if deep.any():
        flat[deep] = shapely.transform(geometries[deep], _exchange, include_z=True)
    swapped = shapely.to_wkb(flat, flavor="iso")
    unreadable = shapely.is_missing(geometries)
    swapped[unreadable] = values[unreadable]
    return pa.array(swapped, pa.binary())


def _exchange(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    return coordinates[:, [1, 0, *range(2, coordinates.shape[1])]]
