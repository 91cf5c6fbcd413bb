"""Converts the values of whole columns to types that PostgreSQL and its readers can hold.

Text becomes valid UTF-8 without zero bytes. NaN and infinity become NULL, since JSON cannot express them. Dates outside
the years 1 to 9999 become NULL, since most readers cannot hold them. Lists and structures become JSON. Whole numbers
beyond those of a bigint become NULL.
"""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geomill.vector import json_values

FALLBACK_ENCODING = "cp1252"
"""The assumed encoding of text that should be UTF-8 but is not."""
_JSON = "arrow.json"
"""The name of Arrow's type for texts that are JSON."""
_LARGEST_WHOLE = 2**63 - 1
_DAY = 86_400_000_000
_FIRST = (datetime.date(1, 1, 1) - datetime.date(1970, 1, 1)).days
_LAST = (datetime.date(9999, 12, 31) - datetime.date(1970, 1, 1)).days
_TYPES: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (lambda t: t in (pa.int8(), pa.uint8(), pa.int16()), "smallint"),
    (lambda t: t in (pa.uint16(), pa.int32()), "integer"),
    (pa.types.is_integer, "bigint"),
    (lambda t: t in (pa.float16(), pa.float32()), "real"),
    (lambda t: pa.types.is_floating(t) or pa.types.is_decimal(t), "double precision"),
    (pa.types.is_date, "date"),
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, "timestamp with time zone"),
    (pa.types.is_timestamp, "timestamp without time zone"),
    (pa.types.is_time, "time without time zone"),
    (lambda t: pa.types.is_nested(t), "jsonb"),
    (lambda t: _is_bytes(t), "bytea"),
)

_WHOLE = {"smallint": pa.int16(), "integer": pa.int32(), "boolean": pa.bool_()}


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or kind == pa.binary_view()
    )


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the type inside extension and dictionary types."""
    if isinstance(kind, pa.BaseExtensionType):
        return storage_type(kind.storage_type)
    return storage_type(kind.value_type) if pa.types.is_dictionary(kind) else kind


def postgres_type(kind: pa.DataType) -> str:
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == _JSON:
        return "jsonb"
    kind = storage_type(kind)
    return next((name for matches, name in _TYPES if matches(kind)), "text")


def prepare(values: pa.Array, target: str, counts: Counter[str]) -> pa.Array:
    """Convert values to the Arrow type that `copying` writes as the given type of PostgreSQL."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    match target:
        case "text":
            return _text(values, counts)
        case "real" | "double precision":
            return _number(values, pa.float32() if target == "real" else pa.float64(), counts)
        case "date":
            return _bounded(values.cast(pa.date32()).cast(pa.int32()), _FIRST, _LAST, counts)
        case "timestamp with time zone" | "timestamp without time zone":
            return _moment(values, counts)
        case "time without time zone":
            return values.cast(pa.time64("us"), safe=False).cast(pa.int64())
        case "jsonb":
            return _json(values, counts)
        case "bytea":
            return values.cast(pa.binary())
        case _:
            return _whole(values, target, counts)


def _text(values: pa.Array, counts: Counter[str]) -> pa.Array:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        values = _as_text(values)
    raw = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raw = _decoded(raw, counts)
    zeros = pc.sum(pc.match_substring(raw, b"\0")).as_py()
    if zeros:
        counts["text_zero_bytes"] += zeros
        raw = pc.replace_substring(raw, b"\0", b"")
    return raw.cast(pa.binary())


def _as_text(values: pa.Array) -> pa.Array:
    """Arrow cannot convert all of its types to text, such as intervals."""
    try:
        return values.cast(pa.string())
    except pa.ArrowNotImplementedError:
        return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def _decoded(raw: pa.Array, counts: Counter[str]) -> pa.Array:
    decoded = [_utf8(value, counts) for value in raw.to_pylist()]
    return pa.array(decoded, pa.binary())


def _utf8(value: bytes | None, counts: Counter[str]) -> bytes | None:
    try:
        return value if value is None or value.decode() is not None else None
    except UnicodeDecodeError:
        counts["text_reencoded"] += 1
        return value.decode(FALLBACK_ENCODING, errors="replace").encode() if value else value


def _number(values: pa.Array, kind: pa.DataType, counts: Counter[str]) -> pa.Array:
    values = values.cast(kind, safe=False)
    wrong = pc.invert(pc.is_finite(values))
    number = pc.sum(wrong).as_py()
    if number:
        counts["number_not_finite"] += number
        values = pc.if_else(wrong, pa.scalar(None, kind), values)
    return values


def _moment(values: pa.Array, counts: Counter[str]) -> pa.Array:
    """Convert to microseconds since 1970. Smaller parts of a second are cut off."""
    unit = values.type.unit
    ticks = values.cast(pa.int64())
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(unit)
    if factor is None:
        return pc.floor(pc.divide(ticks, 1_000)).cast(pa.int64())  # nanoseconds cannot express years out of range
    ticks = _bounded(ticks, _FIRST * _DAY // factor, (_LAST + 1) * _DAY // factor - 1, counts)
    return pc.multiply(ticks, factor)


def _bounded(values: pa.Array, low: int, high: int, counts: Counter[str]) -> pa.Array:
    wrong = pc.or_(pc.less(values, low), pc.greater(values, high))
    number = pc.sum(wrong).as_py()
    if number:
        counts["date_out_of_range"] += number
        values = pc.if_else(wrong, pa.scalar(None, values.type), values)
    return values


def _json(values: pa.Array, counts: Counter[str]) -> pa.Array:
    if pa.types.is_nested(values.type):
        return json_values.from_nested(values, counts)
    return json_values.from_texts(_text(values, counts))


def _whole(values: pa.Array, target: str, counts: Counter[str]) -> pa.Array:
    if values.type == pa.uint64():
        wrong = pc.greater(values, pa.scalar(_LARGEST_WHOLE, pa.uint64()))
        number = pc.sum(wrong).as_py()
        if number:
            counts["number_too_large"] += number
            values = pc.if_else(wrong, pa.scalar(None, values.type), values)
    return values.cast(_WHOLE.get(target, pa.int64()))


def filled(values: pa.Array) -> int:
    return int(len(values) - values.null_count)


def as_numbers(values: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """Return the values as an array, zero for NULL, and a mask of those that are not NULL; None if all are not."""
    if values.null_count == 0:
        return values.to_numpy(zero_copy_only=False), None
    there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    empty = pa.scalar(False if pa.types.is_boolean(values.type) else 0, values.type)
    return pc.fill_null(values, empty).to_numpy(zero_copy_only=False), there
