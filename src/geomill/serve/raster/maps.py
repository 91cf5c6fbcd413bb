"""Reference systems as OGC's standards name them, and boxes with the axes in their order, for maps and clips.

TiTiler and GDAL read and write boxes with longitude or easting first, whatever the system.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.serve.vector.crs import DEGREES, axes, named

_SWAPPED = {4: (1, 0, 3, 2), 6: (1, 0, 2, 4, 3, 5)}
"""The places of the numbers of a box, by how many it has."""


class MapAxes:
    """Changes requests and answers of `…/map` and `…/clip.tif`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith(("/map", "/clip.tif")):
            await self._app(scope, receive, send)
            return

        async def send_in_order(message: Message) -> None:
            if message["type"] == "http.response.start":
                _order(MutableHeaders(scope=message))
            await send(message)

        await self._app({**scope, "query_string": _translated(scope["query_string"])}, receive, send_in_order)


def _translated(query: bytes) -> bytes:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    system = axes(named(dict(pairs).get("bbox-crs", "")))
    changed = [(name, _value(name, value, swapped=bool(system and system.swapped))) for name, value in pairs]
    return urlencode(changed).encode()


def _value(name: str, value: str, *, swapped: bool) -> str:
    match name:
        case "bbox" if swapped:
            return _swapped(value)
        case "crs" | "bbox-crs":
            return _code(value)
        case _:
            return value


def _code(text: str) -> str:
    """Return the short name of a system. What is not known stays as it is, and is checked later."""
    uri = named(text)
    if uri is None:
        return text
    return "OGC:CRS84" if uri in DEGREES.values() else f"EPSG:{uri.rpartition('/')[2]}"


def _swapped(box: str) -> str:
    numbers = box.split(",")
    return ",".join(numbers[place] for place in _SWAPPED.get(len(numbers), range(len(numbers))))


def _order(headers: MutableHeaders) -> None:
    system = axes(named(headers.get("content-crs", "").strip("<>")))
    if system and system.swapped and "content-bbox" in headers:
        headers["content-bbox"] = _swapped(headers["content-bbox"])
