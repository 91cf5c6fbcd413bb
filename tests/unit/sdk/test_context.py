"""The context that a handler is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from geomill.sdk import HandlerContext, HandlerError, SavedCheckpoint, register_handler
from geomill.sdk.testing import HandlerRun, run_handler


def run(work: Callable[[HandlerContext[Any]], Any], **more: Any) -> HandlerRun:
    return run_handler(register_handler("work")(work), **more)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ((0.5,), (0.5, "")),
        ((3, 10, "tile 3"), (0.3, "tile 3")),
        ((5, 0), (1.0, "")),
        ((7, 5), (1.0, "")),
        ((-1,), (0.0, "")),
        ((2.0,), (1.0, "")),
        ((0, 4), (0.0, "")),
    ],
)
def test_progress_is_a_fraction_between_0_and_1(arguments: tuple[Any, ...], reported: tuple[float, str]) -> None:
    assert run(lambda ctx: ctx.progress(*arguments)).progress == [reported]


def test_checkpoints_are_saved_in_order_and_apart_from_the_handler_s_data() -> None:
    def work(ctx: HandlerContext[Any]) -> None:
        data = {"n": 1}
        ctx.save_checkpoint("one", data)
        data["n"] = 2
        ctx.save_checkpoint("two", data)
        ctx.save_checkpoint("three")

    saved = run(work).checkpoints
    assert saved == [SavedCheckpoint("one", {"n": 1}), SavedCheckpoint("two", {"n": 2}), SavedCheckpoint("three", {})]


def test_the_checkpoint_of_an_earlier_attempt_is_at_hand() -> None:
    def work(ctx: HandlerContext[Any]) -> dict[str, Any]:
        assert ctx.checkpoint is not None
        return {"phase": ctx.checkpoint.phase, "n": ctx.checkpoint.data["n"]}

    assert run(work, checkpoint=SavedCheckpoint("p", {"n": 4})).output == {"phase": "p", "n": 4}
    assert run(lambda ctx: {"none": ctx.checkpoint is None}).output == {"none": True}


def test_a_cancelled_task_is_told_so() -> None:
    ended = run(lambda ctx: ctx.raise_if_cancelled(), cancelled=lambda: True).ended
    assert (ended.success, ended.error_code, ended.error_message) == (False, "cancelled", "the task was cancelled")
    assert run(lambda ctx: {"cancelled": ctx.cancelled}, cancelled=lambda: True).output == {"cancelled": True}


def test_a_task_that_is_not_cancelled_goes_on() -> None:
    def work(ctx: HandlerContext[Any]) -> dict[str, Any]:
        ctx.raise_if_cancelled()
        return {"cancelled": ctx.cancelled}

    assert run(work).output == {"cancelled": False}


def test_the_context_says_who_the_task_is() -> None:
    def work(ctx: HandlerContext[Any]) -> dict[str, Any]:
        return {"ids": [ctx.task_id, ctx.job_id, ctx.node_id, ctx.handler], "counts": [ctx.attempt, ctx.retry_count]}

    output = run(work, attempt=3).output
    assert output == {"ids": ["test-job:node:3", "test-job", "node", "work"], "counts": [3, 2]}


def test_storage_and_pool_are_handed_through() -> None:
    assert run(lambda ctx: {"both": [ctx.storage, ctx.pool]}, storage="s", pool="p").output == {"both": ["s", "p"]}


def test_a_handler_error_says_whether_to_try_again() -> None:
    error = HandlerError("no", retryable=False, code="mine")
    assert (str(error), error.retryable, error.error_code) == ("no", False, "mine")
    assert (HandlerError("no").retryable, HandlerError("no").error_code) == (True, "handler_error")
