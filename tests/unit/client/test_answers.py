"""Answers, as the client reads them."""

from __future__ import annotations

import httpx
import pytest

from geomill.client import answers
from geomill.errors import (
    AssetExists,
    ConflictError,
    GeomillError,
    InputError,
    InputsError,
    NotFoundError,
    TooManyRequests,
    UnavailableError,
)


def problem(status: int, code: str, **more: object) -> httpx.Response:
    return httpx.Response(status, json={"status": status, "code": code, "detail": "the reason", **more})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(404, "not_found"), NotFoundError),
        (problem(409, "asset_exists"), AssetExists),
        (problem(409, "a_code_of_a_newer_gateway"), ConflictError),
        (problem(409, "illegal_transition"), ConflictError),
        (problem(422, "invalid_inputs"), InputsError),
        (problem(400, "malformed_request"), InputError),
        (problem(418, "teapot"), InputError),
        (problem(503, "unavailable"), UnavailableError),
        (httpx.Response(502, text="<html>a proxy's page</html>"), UnavailableError),
        (httpx.Response(500, json=["no object"]), GeomillError),
    ],
)
def test_an_error_is_the_one_that_the_gateway_raised(answer: httpx.Response, kind: type[GeomillError]) -> None:
    assert type(answers.error_of(answer)) is kind


def test_every_problem_is_passed_on() -> None:
    error = answers.error_of(
        problem(422, "invalid_inputs", errors=[{"field": "count", "message": "is too large", "hint": "at most 50"}])
    )
    assert isinstance(error, InputError)
    assert [str(entry) for entry in error.problems] == ["count: is too large (at most 50)"]


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0), ("-3", 1.0), ("nan", 1.0)]
)
def test_the_time_to_wait_is_told(header: str, seconds: float) -> None:
    error = answers.error_of(httpx.Response(429, headers={"Retry-After": header}, json={"detail": "slowly"}))
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


@pytest.mark.parametrize("value", ["../keys", "a/b", "a?b=c", "..", ".", "a#b", "ä b"])
def test_a_value_cannot_leave_its_place_in_a_path(value: str) -> None:
    url = httpx.URL("http://gateway").join(answers.path("/api/v1/jobs/{}/cancel", value))
    assert url.raw_path.startswith(b"/api/v1/jobs/")
    assert url.raw_path.count(b"/") == 5
    assert url.raw_path.endswith(b"/cancel")
    assert not url.query


def test_what_is_final_is_not_sent_again() -> None:
    assert answers.pause_before_retry(httpx.Response(404), 1, 3) is None
    assert answers.pause_before_retry(httpx.Response(503), 3, 3) is None
    assert answers.pause_before_retry(httpx.Response(503, headers={"Retry-After": "3600"}), 1, 3) == 5.0
    first, second = (answers.pause_before_retry(None, tries, 3) for tries in (1, 2))
    assert first is not None
    assert second is not None
    assert first < second
