"""The acquisition time of data, as a STAC item states it."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel

from geomill.datasets.refusals import refused


class Times(BaseModel):
    """The acquisition time, or the range in which it lies."""

    datetime: str | None = None
    start_datetime: str | None = None
    end_datetime: str | None = None
    known_from: str = "received"
    """The origin of the time: `input`, `file`, or `received`, which means that the data is no newer than that."""


def times(
    instant: str | None, start: str | None, end: str | None, acquired: str | None, received: str
) -> tuple[Times, list[str]]:
    """Return the time from the input, from the file, or of receipt, in this order, and warnings. Never invents a
    date."""
    if instant:
        return Times(datetime=_input_time(instant), known_from="input"), []
    if start or end:
        if not (start and end):
            raise refused("bad_datetime", "start_datetime and end_datetime must be given together")
        return Times(start_datetime=_input_time(start), end_datetime=_input_time(end), known_from="input"), []
    if acquired and (acquired_at := _parsed(acquired)):
        return Times(datetime=acquired_at, known_from="file"), []
    received = _rfc3339(received)
    warning = "the date of acquisition is unknown: the catalogue has the time at which the file was received"
    return Times(start_datetime=received, end_datetime=received), [warning]


def _input_time(text: str) -> str:
    if parsed := _parsed(text):
        return parsed
    raise refused("bad_datetime", f"{text[:60]!r} is not a date: write it as 2024-04-17 or 2024-04-17T10:30:00Z")


def _parsed(text: str) -> str | None:
    try:
        return _rfc3339(text)
    except ValueError:
        return None


def _rfc3339(text: str) -> str:
    value = datetime.fromisoformat(text.strip())
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
