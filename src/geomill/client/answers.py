"""Turns answers of a gateway into results and errors. Both clients share it; it does no input or output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from geomill import errors
from geomill.errors import (
    ConflictError,
    DestructiveMigration,
    Forbidden,
    GeomillError,
    InputError,
    NotFoundError,
    Problem,
    TooManyRequests,
    Unauthenticated,
    UnavailableError,
)

START = "start 'geomill up', or set GEOMILL_URL and GEOMILL_KEY"
LONGEST_PAUSE_SECONDS = 5.0
BY_STATUS: Mapping[int, type[GeomillError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFoundError,
    409: ConflictError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def _by_code() -> dict[str, type[GeomillError]]:
    """Return the errors that are made from a message alone, by their code."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, GeomillError)]
    return {kind.code: kind for kind in kinds if "__init__" not in vars(kind)}


BY_CODE = _by_code()


def path(template: str, *values: str) -> str:
    """Return a path with each `{}` replaced by a value. A value cannot leave its place: `/` and `?` are escaped."""
    return template.format(*map(_escaped, values))


def _escaped(value: str) -> str:
    return quote(value, safe="") if value.strip(".") else value.replace(".", "%2E")


def parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return query parameters. None is left out, and enumerations are sent by their values."""
    return {name: getattr(value, "value", value) for name, value in values.items() if value is not None}


def result_of(answer: httpx.Response) -> Any:
    """Return the parsed JSON, or the text, of a successful answer. Raises one of geomill's errors for a failure."""
    if not answer.is_success:
        raise error_of(answer)
    if answer.status_code == 204 or not answer.content:
        return None
    return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text


def error_of(answer: httpx.Response) -> GeomillError:
    """Return the error that a failed answer describes. A body that is no problem document becomes a general error."""
    document = _document(answer)
    detail = str(document.get("detail") or f"the gateway answered {answer.status_code} {answer.reason_phrase}")
    if statements := document.get("statements"):
        return DestructiveMigration(detail, statements=statements)
    if answer.status_code == 429:
        return TooManyRequests(detail, retry_after=retry_after(answer))
    kind = BY_CODE.get(str(document.get("code"))) or BY_STATUS.get(answer.status_code)
    if kind is None:
        kind = InputError if answer.is_client_error else GeomillError
    if issubclass(kind, InputError):
        return kind(detail, problems=_problems(document))
    return kind(detail)


def retry_after(answer: httpx.Response) -> float:
    """Return the seconds to wait before the request is sent again."""
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:  # absent, or a date
        return 1.0
    return seconds if math.isfinite(seconds) and seconds >= 0 else 1.0


def unreachable(url: httpx.URL, error: httpx.TransportError) -> UnavailableError:
    where = str(url).rstrip("/")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return UnavailableError(f"no gateway answers at {where}", remedy=START)
    return UnavailableError(f"the gateway at {where} did not answer: {error}", remedy="try again in a moment")


def pause_before_retry(answer: httpx.Response | None, tries: int, most: int) -> float | None:
    """Return the seconds after which a request that only reads is sent again, or None if its failure is final.

    `answer` is None if no answer came. `tries` counts the requests that were sent, and `most` is their limit.
    """
    if tries >= most or (answer is not None and answer.status_code not in (502, 503, 504)):
        return None
    pause = 0.2 * 2.0 ** (tries - 1)
    if answer is not None and "retry-after" in answer.headers:
        pause = retry_after(answer)
    return min(pause, LONGEST_PAUSE_SECONDS)


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:  # a proxy's page
        return {}
    return body if isinstance(body, dict) else {}


def _problems(document: Mapping[str, Any]) -> Iterable[Problem]:
    entries = document.get("errors")
    for entry in entries if isinstance(entries, list) else ():
        yield Problem(str(entry.get("field", "")), str(entry.get("message", "")), str(entry.get("hint", "")))
