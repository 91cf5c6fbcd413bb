"""Limits of a catalogue search: only known fields, with a bounded number of values each.

A body is measured before it is parsed, because parsing a geometry takes ten microseconds for each point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sized
from typing import Any

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.api.problems import respond_to
from geomill.domain.access.signed_link import PARAMETER
from geomill.errors import InputError, Problem, nearest
from geomill.serve.filters import check_json
from geomill.serve.whole_days import whole_days

LONGEST_BODY = 250_000
MOST_VALUES = 15_000
"""The maximum number of values in a body, as many as a geometry of 5,000 points has."""
DEEPEST_BODY = 64
MOST = {"ids": 1_000, "collections": 1_000, "sortby": 20, "fields": 200, "q": 50}
LONGEST_TEXT = 5_000


def check_query(request: Request) -> None:
    """Raise `InputError` for an unknown parameter."""
    route = request.scope["route"]
    parameters = [parameter.alias for parameter in get_flat_params(route.dependant)]
    _refuse_unknown(request.query_params, (*parameters, PARAMETER))


async def check_body(request: Request, model: type[BaseModel]) -> None:
    """Raise `InputError` for an unknown field."""
    field_names = [name for field, info in model.model_fields.items() for name in (field, info.alias) if name]
    body = await request.json()
    _refuse_unknown(body if isinstance(body, dict) else (), [name for name in field_names if name not in _INNER])


def without_empty(names: list[str] | None) -> list[str] | None:
    """Return the names without empty ones, such as that of `fields=`, on which stac-fastapi fails."""
    return [name for name in names if name] or None if names else None


def check_sizes(**fields: Any) -> None:
    for name, value in fields.items():
        if isinstance(value, Sized) and len(value) > MOST.get(name, LONGEST_TEXT):
            raise _wrong(name, f"must have at most {MOST.get(name, LONGEST_TEXT)} entries, not {len(value)}")


def check_box(bbox: Any) -> None:
    if bbox and not all(math.isfinite(corner) for corner in bbox):
        raise _wrong("bbox", "must have only finite numbers")


_INNER = ("conf", "filter_expr", "filter_crs", "filter_lang")
"""Fields of the model that are internal or have another name in requests."""


def _refuse_unknown(names: Iterable[str], allowed: Iterable[str]) -> None:
    for name in names:
        if name not in allowed:
            raise _wrong(name[:100], "the field does not exist", nearest(name[:100], allowed))


def _wrong(field: str, message: str, hint: str = "") -> InputError:
    problem = Problem(field, message, hint)
    return InputError(f"the request is wrong: {problem}", problems=[problem])


class BoundedBody:
    """Measures a posted body before it is parsed, and replaces dates in it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more and len(body) <= LONGEST_BODY:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        try:
            text = body.decode("utf-8", "replace")
            if not text.lstrip().startswith("{"):
                raise _wrong("body", "must be a JSON object")
            check_json(text, field="body", longest=LONGEST_BODY, most=MOST_VALUES, deepest=DEEPEST_BODY)
        except InputError as error:
            await respond_to(scope["path"], error, status=400)(scope, receive, send)
            return
        content, unread = _with_moments(bytes(body)), True

        async def again() -> Message:
            nonlocal unread
            if unread:
                unread = False
                return {"type": "http.request", "body": content, "more_body": False}
            return await receive()

        await self._app(scope, again, send)


def _with_moments(body: bytes) -> bytes:
    """Replace dates in `datetime` by moments. A body that is not JSON is refused later."""
    if b'"datetime"' not in body:
        return body
    try:
        document = json.loads(body)
    except ValueError:
        return body
    text = document.get("datetime")
    if not isinstance(text, str) or whole_days(text) == text:
        return body
    return json.dumps({**document, "datetime": whole_days(text)}).encode()
