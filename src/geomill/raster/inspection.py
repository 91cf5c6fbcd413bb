"""Collects the facts of an open dataset: header, georeference, and a sample of the pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import DatasetReader
from rasterio.windows import Window

from geomill.datasets.refusals import refused
from geomill.raster.detection import detect
from geomill.raster.extent import WGS84, bounds_4326, transform_points
from geomill.raster.facts import BandFacts, RasterFacts, Validity, plain_nodata
from geomill.raster.opening import bytes_per_pixel, uncompressed_bytes
from geomill.sdk import ObjectName

READ_WHOLE = 64 * 1024 * 1024
SAMPLE_SIDE = 512
PLACES, PLACE_SIDE = 8, 96
"""The sample of a file without overviews: this many windows each way, of this many pixels. They cover the whole raster,
because corners are often empty."""
_ACQUISITION = (("IMAGERY", "ACQUISITIONDATETIME"), (None, "ACQUISITIONDATETIME"), (None, "ACQUISITION_DATE"))


@dataclass(frozen=True)
class Sample:
    """A sample of pixels. `data` has the bands first; `valid` is true for valid pixels."""

    data: NDArray[Any]
    valid: NDArray[np.bool_]

    @property
    def valid_fraction(self) -> float:
        return float(self.valid.mean()) if self.valid.size else 0.0


def inspect(dataset: DatasetReader, name: ObjectName) -> tuple[RasterFacts, list[str]]:
    """Return the facts, and warnings about oddities that can be processed. Raises a refusal for a raster that
    cannot."""
    check_georeference(dataset, name)
    sample = take_sample(dataset)
    warnings = _warnings(dataset, sample)
    facts = _header(dataset).model_copy(
        update={"valid_fraction": round(sample.valid_fraction, 6), "bands": _bands(dataset, sample)}
    )
    kind = detect(facts, _distinct(sample), _hints(dataset, name))
    return facts.model_copy(update={"raster_type": kind}), warnings


def check_georeference(dataset: DatasetReader, name: ObjectName) -> None:
    if not all(map(math.isfinite, dataset.transform[:6])):
        raise refused("bad_transform", f"the georeference of '{name}' has numbers that are not finite")
    if dataset.crs is None:
        raise refused("no_crs", f"'{name}' has no coordinate system: give it in the option source_crs", source_crs=None)
    if dataset.transform.is_identity:
        raise refused("no_georeference", f"'{name}' has no georeference")
    if abs(dataset.transform.determinant) < 1e-30:
        raise refused("bad_transform", f"the pixels of '{name}' have no area")
    if not all(map(math.isfinite, _centre(dataset))):
        raise refused("crs_unusable", f"the coordinates of '{name}' cannot be converted to longitude and latitude")


def _centre(dataset: DatasetReader) -> tuple[float, float]:
    x, y = dataset.transform @ (dataset.width / 2, dataset.height / 2)
    longitudes, latitudes = transform_points(dataset.crs, WGS84, [x], [y])
    return longitudes[0], latitudes[0]


def short_crs(crs: CRS) -> str:
    """Return an authority code if it matches exactly, else WKT."""
    authority = crs.to_authority(confidence_threshold=100)
    return ":".join(authority) if authority else str(crs.to_wkt())


def alpha_band(dataset: DatasetReader) -> int | None:
    colors = dataset.colorinterp
    return colors.index(ColorInterp.alpha) + 1 if ColorInterp.alpha in colors else None


def nodata_of(dataset: DatasetReader) -> float | None:
    """Return the nodata value if the type can hold it. Floats without a nodata value, alpha or mask use NaN."""
    floats, value = dataset.dtypes[0].startswith("float"), dataset.nodata
    if value is None:
        masked = alpha_band(dataset) or MaskFlags.per_dataset in dataset.mask_flag_enums[0]
        return math.nan if floats and not masked else None
    if floats:
        return float(np.clip(value, np.finfo(dataset.dtypes[0]).min, np.finfo(dataset.dtypes[0]).max))
    limits = np.iinfo(dataset.dtypes[0])
    return float(value) if limits.min <= value <= limits.max else None


def validity_of(dataset: DatasetReader) -> Validity:
    if alpha_band(dataset):
        return Validity.ALPHA
    if nodata_of(dataset) is not None:
        return Validity.NODATA
    return Validity.MASK if MaskFlags.per_dataset in dataset.mask_flag_enums[0] else Validity.ALL


def bits_of(dataset: DatasetReader) -> int | None:
    bits = dataset.tags(1, ns="IMAGE_STRUCTURE").get("NBITS")
    return int(bits) if bits and int(bits) < 8 else None


def has_palette(dataset: DatasetReader) -> bool:
    return bool(dataset.count == 1 and dataset.colorinterp[0] is ColorInterp.palette)


def _header(dataset: DatasetReader) -> RasterFacts:
    height, width = dataset.block_shapes[0]
    return RasterFacts(
        driver=dataset.driver,
        width=dataset.width,
        height=dataset.height,
        count=dataset.count,
        dtype=dataset.dtypes[0],
        bits=bits_of(dataset),
        crs=short_crs(dataset.crs),
        transform=tuple(dataset.transform[:6]),
        bounds_4326=bounds_4326(dataset),
        nodata=plain_nodata(nodata_of(dataset)),
        validity=validity_of(dataset),
        palette=has_palette(dataset),
        block=(width, height),
        tiled=width < dataset.width or dataset.driver != "GTiff" or bool(dataset.profile.get("tiled")),
        compression=dataset.compression.value if dataset.compression else None,
        interleave=dataset.profile.get("interleave"),
        overviews=dataset.overviews(1),
        uncompressed_bytes=uncompressed_bytes(dataset),
        acquired=_acquired(dataset),
    )


def _bands(dataset: DatasetReader, sample: Sample) -> list[BandFacts]:
    return [
        BandFacts(
            name=dataset.descriptions[index],
            units=dataset.units[index] or None,
            scale=dataset.scales[index],
            offset=dataset.offsets[index],
            color=dataset.colorinterp[index].name,
            minimum=_extreme(sample, index, np.min),
            maximum=_extreme(sample, index, np.max),
        )
        for index in range(dataset.count)
    ]


def _extreme(sample: Sample, index: int, which: Any) -> float | None:
    values = sample.data[index][sample.valid]
    values = values[np.isfinite(values)]
    return float(which(values)) if values.size else None


def _distinct(sample: Sample) -> int:
    values = sample.data[0][sample.valid]
    return len(np.unique(values)) if values.size else 0


def _hints(dataset: DatasetReader, name: ObjectName) -> list[str]:
    words = [name.name.replace("_", " "), *(text for text in dataset.descriptions if text)]
    return [*words, *(text for key, text in dataset.tags().items() if key.endswith(("DESCRIPTION", "TITLE")))]


def _acquired(dataset: DatasetReader) -> str | None:
    for domain, key in _ACQUISITION:
        if date := dataset.tags(ns=domain).get(key):
            return str(date)
    return None


def take_sample(dataset: DatasetReader) -> Sample:
    if dataset.overviews(1) or uncompressed_bytes(dataset) <= READ_WHOLE:
        return _decimated(dataset)
    return _scattered(dataset)


def _decimated(dataset: DatasetReader) -> Sample:
    factor = max(1.0, max(dataset.width, dataset.height) / SAMPLE_SIDE)
    shape = max(1, round(dataset.height / factor)), max(1, round(dataset.width / factor))
    data = dataset.read(out_shape=(dataset.count, *shape))
    return Sample(data, _valid(dataset, data, dataset.dataset_mask(out_shape=shape)))


def _scattered(dataset: DatasetReader) -> Sample:
    """Sample windows spread over the whole raster, for a file without overviews, where a decimated read would read
    everything."""
    side = max(16, min(PLACE_SIDE, math.isqrt(READ_WHOLE // bytes_per_pixel(dataset)) // PLACES))
    rows = []
    for row in _places(dataset.height, side):
        windows = [Window(column, row, side, side) for column in _places(dataset.width, side)]
        parts = [(dataset.read(window=window), dataset.dataset_mask(window=window)) for window in windows]
        rows.append((np.concatenate([p[0] for p in parts], axis=2), np.concatenate([p[1] for p in parts], axis=1)))
    data = np.concatenate([row[0] for row in rows], axis=1)
    return Sample(data, _valid(dataset, data, np.concatenate([row[1] for row in rows], axis=0)))


def _places(length: int, side: int) -> list[int]:
    last = max(length - side, 0)
    return sorted({round(last * number / (PLACES - 1)) for number in range(PLACES)})


def _valid(dataset: DatasetReader, data: NDArray[Any], mask: NDArray[np.uint8]) -> NDArray[np.bool_]:
    valid: NDArray[np.bool_] = mask > 0
    if dataset.dtypes[0].startswith("float"):
        valid &= np.isfinite(data).any(axis=0)
    return valid


def _warnings(dataset: DatasetReader, sample: Sample) -> list[str]:
    warnings = []
    if not sample.valid.any():
        warnings.append("a sample of the whole raster has no valid pixel")
    if dataset.transform.e > 0:
        warnings.append("the raster is stored south-up; the output is north-up")
    if dataset.transform.b or dataset.transform.d:
        warnings.append("the raster is rotated; the output is north-up")
    return warnings
