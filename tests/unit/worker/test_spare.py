"""When a full worker looks for somebody who has nothing there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from geomill.domain.engine.message import HEAVY_QUEUE, LIGHT_QUEUE
from geomill.queues.postgres import Delivery
from geomill.worker.options import WorkerOptions
from geomill.worker.spare import Search, Spare

QUEUES = (LIGHT_QUEUE, HEAVY_QUEUE)


@dataclass
class FakeSlot:
    """The part of a slot that the search for a spare task reads."""

    delivery: Delivery


def slot_of(tenant: str, queue_name: str = LIGHT_QUEUE) -> Any:
    return FakeSlot(Delivery(1, queue_name, "m", "{}", 1, 1, datetime.now(UTC), tenant=tenant))


def spare(**options: Any) -> Spare:
    return Spare(WorkerOptions(**{"queues": QUEUES, "concurrency": 3, "processes": 2, "poll_seconds": 0, **options}))


@pytest.mark.parametrize(
    ("slots", "search"),
    [
        ([], None),
        ([slot_of("a")] * 2, None),
        ([slot_of("a")] * 3, Search([*QUEUES], {"a"})),
        ([slot_of("a")] * 3 + [slot_of("b")], None),
        ([slot_of("a"), slot_of("b"), slot_of("a")], Search([*QUEUES], {"a", "b"})),
        ([slot_of("a", HEAVY_QUEUE)] * 2, Search([HEAVY_QUEUE], {"a"})),
        ([slot_of("a", HEAVY_QUEUE)] * 2 + [slot_of("b")], Search([*QUEUES], {"a", "b"})),
        ([slot_of("a", HEAVY_QUEUE)] * 2 + [slot_of("b", HEAVY_QUEUE)], Search([LIGHT_QUEUE], {"a", "b"})),
    ],
    ids=["empty", "room", "full", "spare in use", "shared", "heavy", "heavy and full", "heavy spare in use"],
)
def test_what_is_looked_for(slots: list[Any], search: Search | None) -> None:
    assert spare().search(slots) == search


def test_none_is_spared_where_the_operator_says_so() -> None:
    assert spare(spare=0).search([slot_of("a")] * 3) is None


def test_a_worker_that_stays_full_looks_once_per_poll() -> None:
    full, patient = [slot_of("a")] * 3, spare(poll_seconds=600)
    assert patient.search(full) is not None
    assert patient.search(full) is None
