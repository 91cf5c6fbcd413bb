"""Times by the CF conventions, as NetCDF files and Zarr stores state them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from geomill.datasets.refusals import refused
from geomill.sdk import ObjectName

MOST_NAMED = 20
CALENDARS = ("", "standard", "gregorian", "proleptic_gregorian")
_UNITS = re.compile(r"(second|minute|hour|day)s? since (\S+)(?:[ T](\S+))?.*", re.IGNORECASE)


def cf_times(units: str, calendar: str, values: Iterable[object]) -> list[str | None]:
    """Return the values as RFC 3339, or None where units and calendar do not give a time."""
    values = list(values)
    parts = _UNITS.fullmatch(units.strip())
    if parts is None or calendar.lower() not in CALENDARS:
        return [None] * len(values)
    try:
        start = datetime.fromisoformat(f"{parts[2]}T{parts[3] or '00:00:00'}".removesuffix("Z"))
    except ValueError:
        return [None] * len(values)
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    return [_moment(value, parts[1].lower(), start) for value in values]


def _moment(value: object, unit: str, start: datetime) -> str | None:
    try:
        moment = start + timedelta(**{f"{unit}s": float(str(value))})
    except (ValueError, OverflowError):
        return None
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def all_steps(times: Sequence[str | None], name: ObjectName, most: int) -> list[str]:
    """Return the times of all steps. Raises a refusal if they cannot be told apart, or if they are too many."""
    named_times = [text for text in times if text]
    if not named_times or len(set(named_times)) < len(times):
        raise _alike(name, len(times))
    if len(named_times) > most:
        raise refused(
            "too_large",
            f"'{name}' has {len(named_times):,} time steps, and a collection at most {most:,}: "
            f"name those that you need in times, from {named_times[0]} to {named_times[-1]}",
            times=named_times[:MOST_NAMED],
        )
    return named_times


def chosen_step(times: Sequence[str | None], name: ObjectName, time: str | None) -> int:
    """Return the index of the one step that the option `time` names."""
    if time is None and len(times) == 1:
        return 0
    named_times = [text for text in times if text]
    steps = [index for index, text in enumerate(times) if time and text and text.startswith(time.rstrip("Z"))]
    if len(steps) == 1:
        return steps[0]
    if not named_times or len(set(named_times)) < len(named_times):
        raise _alike(name, len(times))
    raise refused(
        "choose_time",
        f"'{name}' has the times {listed(named_times)}: name one of them in the option time",
        time=named_times[:MOST_NAMED],
    )


def _alike(name: ObjectName, count: int) -> Exception:
    return refused(
        "unsupported_dimensions",
        f"'{name}' has {count:,} layers that cannot be told apart by their time: "
        "write the layer to a file of its own, for example with ncks or gdal_translate -b",
    )


def chosen_variable(names: Sequence[str], name: ObjectName, variable: str | None) -> str:
    """Return the variable that the option names, or the only one."""
    if variable in names:
        return str(variable)
    if variable is None and len(names) == 1:
        return names[0]
    raise refused(
        "choose_variable",
        f"'{name}' has the variables {listed(names)}: name one of them in the option variable",
        variable=list(names[:MOST_NAMED]),
    )


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(name[:60] for name in names[:MOST_NAMED]) + more
