"""Running a handler once: whatever it does becomes a result."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from geomill.sdk import HandlerContext, HandlerError, HandlerResult, register_handler
from geomill.sdk.execution import LONGEST_ERROR, Ended, execute
from geomill.sdk.registration import MARK
from geomill.sdk.testing import run_handler


class Params(BaseModel):
    n: int
    name: str = "x"


class Output(BaseModel):
    total: float
    note: str | None = None


def ended(work: Callable[[Any], Any], params: dict[str, Any] | None = None, /, **registration: Any) -> Ended:
    return run_handler(register_handler("work", **registration)(work), params).ended


def fails(error: BaseException) -> Callable[[Any], Any]:
    def work(ctx: Any) -> None:
        raise error

    return work


# What comes in


def test_parameters_are_a_model_when_one_is_registered() -> None:
    assert ended(lambda ctx: {"n": ctx.params.n + 1, "name": ctx.params.name}, {"n": "4"}, params=Params).output == {
        "n": 5,
        "name": "x",
    }


def test_parameters_are_a_dict_of_its_own_without_a_model() -> None:
    params = {"a": 1}

    def work(ctx: HandlerContext[dict[str, Any]]) -> dict[str, Any]:
        ctx.params["b"] = 2
        return ctx.params

    assert ended(work, params).output == {"a": 1, "b": 2}
    assert params == {"a": 1}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "invalid parameters for work: n: Field required"),
        ({"n": "four"}, "(got 'four')"),
        ({"n": 1, "name": None}, "name: Input should be a valid string"),
    ],
)
def test_invalid_parameters_are_not_tried_again(params: dict[str, Any], message: str) -> None:
    outcome = ended(fails(AssertionError("not reached")), params, params=Params)
    assert message in outcome.error_message
    assert (outcome.success, outcome.error_code, outcome.retryable) == (False, "invalid_params", False)


# What comes out


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"a": [1, None]}, {"a": [1, None]}),
        (None, {}),
        ({}, {}),
        (Output(total=1.5), {"total": 1.5, "note": None}),
        (HandlerResult(output={"a": 1}), {"a": 1}),
        (HandlerResult(output=Output(total=2)), {"total": 2.0, "note": None}),
        (HandlerResult(), {}),
    ],
)
def test_a_handler_may_return_a_mapping_a_model_a_result_or_nothing(returned: Any, expected: dict[str, Any]) -> None:
    outcome = ended(lambda ctx: returned)
    assert (outcome.success, outcome.output, outcome.error_message) == (True, expected, "")


def test_metrics_come_with_the_result() -> None:
    assert ended(lambda ctx: HandlerResult(metrics={"seconds": 2})).metrics == {"seconds": 2}


@pytest.mark.parametrize("returned", [{"total": "3"}, Output(total=3), HandlerResult(output={"total": 3})])
def test_the_output_model_gives_the_output_its_shape(returned: Any) -> None:
    assert ended(lambda ctx: returned, output=Output).output == {"total": 3.0, "note": None}


@pytest.mark.parametrize(
    ("returned", "model", "message"),
    [
        ({"total": "many"}, Output, "the output of work does not match its model: total: "),
        (None, Output, "total: Field required"),
        ("text", None, "must return a mapping, a model or a HandlerResult, not str"),
        ([], None, "not list"),
        (False, None, "not bool"),
        (0, None, "not int"),
        (HandlerResult(output=[1]), None, "not list"),  # type: ignore[arg-type]
        ({"a": {"b": float("nan")}}, None, "the output cannot be stored: a.b: nan is not a JSON number"),
        (Output(total=float("inf")), None, "cannot be stored: total: inf"),
        ({"a": object()}, None, "a: a object is not a JSON value"),
        ({"a": "\x00"}, None, "NUL"),
        (HandlerResult(metrics={"x": float("nan")}), None, "cannot be stored: x: nan"),
    ],
)
def test_what_cannot_be_an_output_is_not_tried_again(
    returned: Any, model: type[BaseModel] | None, message: str
) -> None:
    outcome = ended(lambda ctx: returned, output=model)
    assert message in outcome.error_message
    assert (outcome.success, outcome.output, outcome.error_code, outcome.retryable) == (
        False,
        None,
        "invalid_output",
        False,
    )


# Failure


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (HandlerError("no", retryable=False, code="mine"), ("no", "mine", False)),
        (HandlerError("no"), ("no", "handler_error", True)),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_handler_says_becomes_its_result(
    error: BaseException, expected: tuple[Any, ...], is_async: bool
) -> None:
    async def work(ctx: Any) -> None:
        raise error

    outcome = ended(work if is_async else fails(error))
    assert (outcome.error_message, outcome.error_code, outcome.retryable) == expected
    assert not outcome.success


SECRET = "SELECT secret FROM t at /srv/geomill/x on db.internal:5432"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError(SECRET), "handler_error"),
        (KeyError(SECRET), "handler_error"),
        (psycopg.errors.UndefinedTable(SECRET), "handler_error"),
        (OSError(5, SECRET), "handler_error"),
        (MemoryError(SECRET), "memory"),
        (SystemExit(SECRET), "handler_error"),
    ],
)
def test_of_any_other_error_only_a_reference_is_told(
    error: BaseException, code: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Partners read the message. The log has the whole error under the same reference."""

    async def work(ctx: Any) -> None:
        raise error

    outcome = ended(work if is_async else fails(error))
    assert (outcome.success, outcome.error_code, outcome.retryable) == (False, code, True)
    assert type(error).__name__ in outcome.error_message
    for secret in ("SELECT", "/srv", "db.internal", "Traceback"):
        assert secret not in outcome.error_message
    reference = outcome.error_message.rpartition(" ")[2]
    assert [record for record in caplog.records if reference in record.getMessage() and record.exc_info]


def test_the_cause_of_an_error_of_ours_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def work(ctx: Any) -> None:
        raise HandlerError("the file is damaged") from ValueError(SECRET)

    assert ended(work).error_message == "the file is damaged"
    assert SECRET in caplog.text


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (HandlerResult(success=False, error_message="no", error_code="mine", retryable=False), ("no", "mine", False)),
        (HandlerResult(success=False), ("the handler gave no reason", "handler_error", True)),
    ],
)
def test_a_result_may_say_that_it_failed(result: HandlerResult, expected: tuple[Any, ...]) -> None:
    outcome = ended(lambda ctx: result)
    assert (outcome.success, (outcome.error_message, outcome.error_code, outcome.retryable)) == (False, expected)


def test_an_error_is_made_fit_to_be_stored() -> None:
    outcome = ended(fails(HandlerError("a\x00b\ud800" + "x" * 5_000, code="c" * 100)))
    assert outcome.error_message.startswith("ab?xxx")
    assert len(outcome.error_message) == LONGEST_ERROR
    assert outcome.error_code == "c" * 64


def test_an_unexpected_error_is_logged_with_its_traceback_and_an_expected_one_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended(fails(ValueError("bad")))
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("the handler raised ValueError, reference ")
    assert record.exc_info is not None
    caplog.clear()
    ended(fails(HandlerError("no")))
    assert caplog.records == []


# Where it runs


async def test_a_sync_handler_runs_in_a_thread_and_an_async_one_in_the_loop() -> None:
    def here(ctx: Any) -> dict[str, Any]:
        return {"thread": threading.get_ident()}

    async def there(ctx: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return here(ctx)

    outcomes = [await _execute(work) for work in (here, there)]
    assert outcomes[0].output["thread"] != threading.get_ident()
    assert outcomes[1].output["thread"] == threading.get_ident()


async def test_being_cancelled_is_passed_on() -> None:
    begun = asyncio.Event()

    async def work(ctx: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(_execute(work))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _execute(work: Callable[[Any], Any]) -> Ended:
    handler = getattr(register_handler("work")(work), MARK)
    return await execute(handler, {}, lambda params: SimpleNamespace(logger=logging.getLogger("work")))


async def test_run_handler_works_inside_an_event_loop() -> None:
    async def work(ctx: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"python": sys.version_info.major}

    run = run_handler(register_handler("work")(work))
    assert (run.success, run.output, run.error) == (True, {"python": 3}, "")


def test_run_handler_works_outside_of_one() -> None:
    run = run_handler(register_handler("work")(fails(HandlerError("no"))))
    assert (run.success, run.output, run.error) == (False, None, "no")
    assert (run.progress, run.checkpoints) == ([], [])
