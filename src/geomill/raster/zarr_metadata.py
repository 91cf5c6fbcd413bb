"""Metadata of the arrays in a Zarr store, of version 2 and 3, in one form.

Only numbers and plain compressors are accepted. A dtype of objects or a codec that is looked up by name could run code.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, PositiveInt, ValidationError

from geomill.datasets.refusals import refused
from geomill.sdk import ObjectName

COMPRESSORS = ("blosc", "zstd", "gzip", "zlib")
DTYPES = {
    "uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "uint32": "u4", "int32": "i4", "uint64": "u8",
    "int64": "i8", "float32": "f4", "float64": "f8",
}  # fmt: skip
MOST_DIMENSIONS = 8
MOST_IN_SHARD = 200_000
"""Chunks in a shard."""
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Lengths = list[PositiveInt]


class ZarrCodec(BaseModel):
    name: str
    configuration: dict[str, JsonValue] = {}


class ZarrCompressor(BaseModel):
    id: str


class ZarrV2Metadata(BaseModel):
    zarr_format: Literal[2]
    shape: Lengths = Field(max_length=MOST_DIMENSIONS)
    chunks: Lengths = Field(max_length=MOST_DIMENSIONS)
    dtype: JsonValue
    compressor: ZarrCompressor | None
    filters: list[JsonValue] | None = None
    order: Literal["C", "F"] = "C"
    fill_value: JsonValue = None
    dimension_separator: Literal[".", "/"] = "."


class ZarrChunkShape(BaseModel):
    chunk_shape: Lengths = Field(max_length=MOST_DIMENSIONS)


class ZarrChunkGrid(BaseModel):
    name: Literal["regular"]
    configuration: ZarrChunkShape


class ZarrSeparator(BaseModel):
    separator: Literal[".", "/"] | None = None


class ZarrChunkKeys(BaseModel):
    name: Literal["default", "v2"]
    configuration: ZarrSeparator = ZarrSeparator()


class ZarrV3Metadata(BaseModel):
    zarr_format: Literal[3]
    node_type: Literal["array"]
    shape: Lengths = Field(max_length=MOST_DIMENSIONS)
    data_type: JsonValue
    chunk_grid: ZarrChunkGrid
    chunk_key_encoding: ZarrChunkKeys
    codecs: list[ZarrCodec]
    fill_value: JsonValue
    dimension_names: list[str | None] | None = None
    storage_transformers: list[JsonValue] = Field(default=[], max_length=0)


class ZarrShardCodec(BaseModel):
    """The configuration of the codec `sharding_indexed`."""

    chunk_shape: Lengths = Field(max_length=MOST_DIMENSIONS)
    codecs: list[ZarrCodec]
    index_codecs: list[ZarrCodec]
    index_location: Literal["start", "end"] = "end"


@dataclass(frozen=True)
class ZarrSharding:
    """How chunks lie in a shard."""

    chunks_in: tuple[int, ...]
    """The number of chunks along each dimension of a shard."""
    index_at_end: bool
    checksum: bool

    @property
    def count(self) -> int:
        return math.prod(self.chunks_in)

    @property
    def index_bytes(self) -> int:
        return 16 * self.count + 4 * self.checksum


@dataclass(frozen=True)
class ZarrArray:
    """The layout of an array whose chunks can be read."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    """As NumPy writes it, such as `<f4`."""
    compressor: str | None
    order: str
    fill: float | None
    """The value of chunks that are not stored."""
    nodata: float | None
    prefix: str
    """Written before the numbers of a chunk in its key."""
    separator: str
    attributes: dict[str, Any] = field(default_factory=dict)
    shards: ZarrSharding | None = None

    @property
    def stored_grid(self) -> tuple[int, ...]:
        """The number of stored files along each dimension: of shards, or of chunks."""
        per_file = self.shards.chunks_in if self.shards else (1,) * len(self.shape)
        return tuple(-(-count // per) for count, per in zip(self.grid, per_file, strict=True))

    @property
    def chunk_bytes(self) -> int:
        return math.prod(self.chunks) * int(self.dtype[2:])

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks along each dimension."""
        return tuple(-(-length // chunk) for length, chunk in zip(self.shape, self.chunks, strict=True))


def parsed_array(node: dict[str, Any], attributes: dict[str, Any], name: ObjectName, variable: str) -> ZarrArray:
    """Return the layout of an array. Raises a refusal if it cannot be read safely."""
    try:
        array = _version_2(node, attributes) if node.get("zarr_format") == 2 else _version_3(node, attributes)
    except ValidationError as error:
        places = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}))
        raise _unsupported(name, variable, f"metadata that are not read: {places}") from error
    except UnsupportedZarr as error:
        raise _unsupported(name, variable, str(error)) from error
    if len(array.shape) != len(array.chunks):
        raise _unsupported(name, variable, "chunks of other dimensions than the array")
    return array


class UnsupportedZarr(ValueError):  # noqa: N818  the name says what happened
    """A feature of an array that is not read."""


def _unsupported(name: ObjectName, variable: str, feature: str) -> Exception:
    return refused(
        "unsupported_format",
        f"the variable '{variable[:60]}' of '{name}' has {feature}. Write it as numbers in chunks that are compressed "
        f"with one of {', '.join(COMPRESSORS)}, without filters, or convert it to NetCDF or GeoTIFF",
    )


def _version_2(node: dict[str, Any], attributes: dict[str, Any]) -> ZarrArray:
    metadata = ZarrV2Metadata.model_validate(node)
    if metadata.filters:
        raise UnsupportedZarr("filters")
    fill = _number(metadata.fill_value)
    return ZarrArray(
        shape=tuple(metadata.shape),
        chunks=tuple(metadata.chunks),
        dtype=_dtype(metadata.dtype, [f"{order}{code}" for order in "<>|" for code in DTYPES.values()]),
        compressor=_compressor(metadata.compressor.id) if metadata.compressor else None,
        order=metadata.order,
        fill=fill,
        nodata=_stated_nodata(attributes) if "_FillValue" in attributes else fill,
        prefix="",
        separator=metadata.dimension_separator,
        attributes=attributes,
    )


def _version_3(node: dict[str, Any], attributes: dict[str, Any]) -> ZarrArray:
    metadata = ZarrV3Metadata.model_validate(node)
    chunks, codecs, sharding = _sharding(tuple(metadata.chunk_grid.configuration.chunk_shape), metadata.codecs)
    dtype, compressor = _codecs(codecs, DTYPES[_dtype(metadata.data_type, list(DTYPES))])
    keys = metadata.chunk_key_encoding
    default = keys.name == "default"
    separator = keys.configuration.separator or ("/" if default else ".")
    names = {"_ARRAY_DIMENSIONS": metadata.dimension_names} if metadata.dimension_names else {}
    return ZarrArray(
        shape=tuple(metadata.shape),
        chunks=chunks,
        dtype=dtype,
        compressor=compressor,
        order="C",
        fill=_number(metadata.fill_value),
        nodata=_stated_nodata(attributes),
        prefix=f"c{separator}" if default else "",
        separator=separator,
        attributes={**attributes, **names},
        shards=sharding,
    )


def _sharding(
    stored: tuple[int, ...], codecs: list[ZarrCodec]
) -> tuple[tuple[int, ...], list[ZarrCodec], ZarrSharding | None]:
    """Return the shape of the chunks, their codecs, and how they lie in shards if they do."""
    if [codec.name for codec in codecs] != ["sharding_indexed"]:
        return stored, codecs, None
    shard = ZarrShardCodec.model_validate(codecs[0].configuration)
    chunks = tuple(shard.chunk_shape)
    if len(chunks) != len(stored) or any(whole % part for whole, part in zip(stored, chunks, strict=True)):
        raise UnsupportedZarr("shards that are not whole chunks")
    names = [codec.name for codec in shard.index_codecs]
    if names not in (["bytes"], ["bytes", "crc32c"]) or shard.index_codecs[0].configuration.get("endian") == "big":
        raise UnsupportedZarr(f"shards whose index has the codecs {', '.join(name[:30] for name in names[:5])}")
    chunks_in = tuple(whole // part for whole, part in zip(stored, chunks, strict=True))
    sharding = ZarrSharding(chunks_in, shard.index_location == "end", "crc32c" in names)
    if sharding.count > MOST_IN_SHARD:
        raise UnsupportedZarr(f"shards of {sharding.count:,} chunks, and at most {MOST_IN_SHARD:,} are read,")
    return chunks, shard.codecs, sharding


def _codecs(codecs: list[ZarrCodec], code: str) -> tuple[str, str | None]:
    """Return dtype and compressor: one codec `bytes`, then at most one compressor."""
    first, *others = codecs or [ZarrCodec(name="none")]
    if first.name != "bytes" or len(others) > 1:
        raise UnsupportedZarr(f"the codecs {', '.join(codec.name[:30] for codec in codecs[:5])}")
    endian = first.configuration.get("endian", "little")
    return (">" if endian == "big" else "<") + code, _compressor(others[0].name) if others else None


def _compressor(name: str) -> str:
    if name not in COMPRESSORS:
        raise UnsupportedZarr(f"the codec {name[:30]!r}")
    return name


def _dtype(value: JsonValue, known: list[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise UnsupportedZarr(f"values of the type {str(value)[:30]!r}")
    return value


def _stated_nodata(attributes: dict[str, Any]) -> float | None:
    return _number(attributes.get("_FillValue", attributes.get("missing_value")))


def _number(value: JsonValue) -> float | None:
    """Return a fill value. xarray writes floats of version 3 as base64 of eight bytes."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    try:
        return float(struct.unpack("<d", base64.b64decode(str(value), validate=True))[0])
    except (binascii.Error, struct.error, ValueError) as error:
        raise UnsupportedZarr(f"the fill value {str(value)[:30]!r}") from error
