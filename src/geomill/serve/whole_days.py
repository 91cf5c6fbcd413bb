"""Dates as ends of an interval in `datetime`. The standards know moments only, but people write days: a date is the
whole day in UTC. A date alone stays as it is and is refused, as the STAC API demands."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIRST, _LAST = "T00:00:00Z", "T23:59:59.999999Z"


def whole_days(text: str) -> str:
    """Return an interval with moments instead of dates. Both ends are included."""
    start, slash, end = text.partition("/")
    if not slash:
        return text
    start = start + _FIRST if _DAY.fullmatch(start) else start
    return start + slash + (end + _LAST if _DAY.fullmatch(end) else end)


class WholeDays:
    """Replaces dates in the parameter `datetime` of requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"datetime=" in scope["query_string"]:
            scope = {**scope, "query_string": _translated(scope["query_string"])}
        await self._app(scope, receive, send)


def _translated(query: bytes) -> bytes:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    changed = [(name, whole_days(value) if name == "datetime" else value) for name, value in pairs]
    return query if changed == pairs else urlencode(changed).encode()
