"""Builds rows for PostgreSQL's binary COPY from whole columns.

A row is a count of fields and, for each field, a length and its bytes; the length is -1 for NULL. Writing it value by
value would take most of the time of a load. So each column becomes an array of byte strings with their lengths, and
Arrow joins the columns row by row. The memory of the joined array is the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geomill.vector.attributes import as_numbers

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
_EPOCH_DAYS = 10_957
"""From 1970 to 2000, the epoch of PostgreSQL."""
_EPOCH_MICROSECONDS = _EPOCH_DAYS * 86_400_000_000
_FIXED: dict[str, tuple[np.dtype[Any], int]] = {
    "boolean": (np.dtype("u1"), 0),
    "smallint": (np.dtype(">i2"), 0),
    "integer": (np.dtype(">i4"), 0),
    "bigint": (np.dtype(">i8"), 0),
    "real": (np.dtype(">f4"), 0),
    "double precision": (np.dtype(">f8"), 0),
    "date": (np.dtype(">i4"), _EPOCH_DAYS),
    "time without time zone": (np.dtype(">i8"), 0),
    "timestamp without time zone": (np.dtype(">i8"), _EPOCH_MICROSECONDS),
    "timestamp with time zone": (np.dtype(">i8"), _EPOCH_MICROSECONDS),
}
"""The binary form of each type, and the number that is subtracted first."""
_JSONB_VERSION = b"\x01"


@dataclass(frozen=True, slots=True)
class Field:
    type: str
    values: pa.Array


def rows(fields: Sequence[Field]) -> memoryview:
    """Return the rows, without header and trailer."""
    count = pa.scalar(len(fields).to_bytes(2, "big"), pa.binary())
    pieces: list[Any] = [count]
    for field in fields:
        pieces += _fixed(field) if field.type in _FIXED else _varying(field)
    joined = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))
    return memoryview(joined.buffers()[2]) if len(joined) else memoryview(b"")


def _fixed(field: Field) -> list[pa.Array]:
    kind, zero = _FIXED[field.type]
    values, there = as_numbers(field.values)
    record = np.empty(len(values), dtype=[("size", ">i4"), ("value", kind)])
    record["size"], record["value"] = kind.itemsize, values - zero if zero else values
    width = 4 + kind.itemsize
    if there is None:
        return [_strings(record.tobytes(), np.arange(len(values) + 1, dtype=np.int32) * width)]
    record["size"][~there] = -1
    written = np.ones((len(values), width), dtype=bool)
    written[~there, 4:] = False
    data = record.view(np.uint8).reshape(len(values), width)[written]
    ends = np.cumsum(np.where(there, width, 4), dtype=np.int32)
    return [_strings(data.tobytes(), np.concatenate([np.zeros(1, np.int32), ends]))]


def _varying(field: Field) -> list[pa.Array]:
    values = field.values.cast(pa.binary())
    extra = len(_JSONB_VERSION) if field.type == "jsonb" else 0
    sizes = pc.fill_null(pc.add(pc.binary_length(values), pa.scalar(extra, pa.int32())), -1)
    heads = sizes.to_numpy(zero_copy_only=False).astype(">i4")
    pieces = [_strings(heads.tobytes(), np.arange(len(heads) + 1, dtype=np.int32) * 4)]
    if extra:
        version = pc.if_else(pc.is_valid(values), pa.scalar(_JSONB_VERSION), pa.scalar(b""))
        pieces.append(version)
    return [*pieces, pc.fill_null(values, b"")]


def _strings(data: bytes, offsets: np.ndarray[Any, Any]) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
