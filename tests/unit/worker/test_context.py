"""The context that a worker makes is the one that its class would."""

from __future__ import annotations

import logging
from dataclasses import FrozenInstanceError

import pytest

from geomill.sdk.context import HandlerContext, SavedCheckpoint
from geomill.sdk.database import DatabaseAccess
from geomill.worker.context import make_context, services
from tests.unit.worker.samples import message, notes

LOGGER = logging.getLogger(__name__)


def never() -> bool:
    return False


def test_it_has_every_field_of_its_class() -> None:
    task, reporter, database = message(item_index=7, retry_count=2), notes(), DatabaseAccess("postgresql://db")
    context = make_context(task, ("half", {"a": 1}), {"x": 1}, LOGGER, reporter, never, services(database=database))
    assert context == HandlerContext(
        "t", "j", "n", "h", {"x": 1}, LOGGER, reporter, 7, 1, 2, SavedCheckpoint("half", {"a": 1}), never,
        database=database, attempt_id="t",
    )  # fmt: skip
    assert vars(context).keys() == vars(context.with_params({})).keys()


def test_it_is_frozen_and_can_be_given_on() -> None:
    context = make_context(message(), None, {"x": 1}, LOGGER, notes(), never, services())
    with pytest.raises(FrozenInstanceError):
        context.params = {}  # type: ignore[misc]  # that is what is refused
    assert context.with_params(2).params == 2
