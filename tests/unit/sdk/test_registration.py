"""The decorator that makes a function a handler."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.engine.workflow import DEFAULT_TIMEOUT_SECONDS
from geomill.sdk import HandlerContext, register_handler
from geomill.sdk.registration import MARK, RegisteredHandler


class NumberParams(BaseModel):
    n: int


class NumberOutput(BaseModel):
    m: int


def mark_of(function: object) -> RegisteredHandler:
    mark = getattr(function, MARK)
    assert isinstance(mark, RegisteredHandler)
    return mark


def test_the_function_is_marked_and_otherwise_as_it_was() -> None:
    def work(ctx: HandlerContext[NumberParams]) -> dict[str, int]:
        """Works.

        At length.
        """
        return {"m": 1}

    registered = register_handler("work", queue="q", timeout_seconds=5, params=NumberParams, output=NumberOutput)(work)
    assert registered is work
    info = mark_of(work).info
    assert (info.name, info.queue, info.timeout_seconds) == ("work", "q", 5)
    assert (info.params, info.output, info.description) == (NumberParams, NumberOutput, "Works.")
    assert mark_of(work).function is work


def test_only_the_name_is_needed() -> None:
    @register_handler("bare")
    def bare(ctx: HandlerContext[dict[str, object]]) -> None: ...

    info = mark_of(bare).info
    assert (info.queue, info.timeout_seconds) == (LIGHT_QUEUE, DEFAULT_TIMEOUT_SECONDS)
    assert (info.params, info.output, info.description) == (None, None, "")


def test_a_description_wins_over_the_docstring() -> None:
    @register_handler("described", description="Short.\nLong.")
    def described(ctx: object) -> None:
        """Another."""

    assert mark_of(described).info.description == "Short."


def test_async_functions_are_told_apart() -> None:
    @register_handler("one")
    def blocking(ctx: object) -> None: ...

    @register_handler("two")
    async def two(ctx: object) -> None: ...

    assert (mark_of(blocking).is_async, mark_of(two).is_async) == (False, True)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_must_fit_its_column(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 64 characters"):
        register_handler(name)


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_timeout_must_be_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout_seconds of the handler 'x' must be more than 0"):
        register_handler("x", timeout_seconds=seconds)


def test_what_is_not_async_runs_in_a_process_of_its_own_unless_said_otherwise() -> None:
    def sync(ctx: Any) -> None: ...

    async def asynchronous(ctx: Any) -> None: ...

    assert mark_of(register_handler("a")(sync)).isolated
    assert not mark_of(register_handler("a")(asynchronous)).isolated
    assert not mark_of(register_handler("a", isolated=False)(sync)).isolated
    assert mark_of(register_handler("a", isolated=True)(asynchronous)).isolated
