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
class Held:
    """All that is asked of a slot here."""

    delivery: Delivery


def held(tenant: str, queue_name: str = LIGHT_QUEUE) -> Any:
    return Held(Delivery(1, queue_name, "m", "{}", 1, 1, datetime.now(UTC), tenant=tenant))


def spare(**options: Any) -> Spare:
    return Spare(WorkerOptions(**{"queues": QUEUES, "concurrency": 3, "processes": 2, "poll_seconds": 0, **options}))


@pytest.mark.parametrize(
    ("slots", "search"),
    [
        ([], None),
        ([held("a")] * 2, None),
        ([held("a")] * 3, Search([*QUEUES], {"a"})),
        ([held("a")] * 3 + [held("b")], None),
        ([held("a"), held("b"), held("a")], Search([*QUEUES], {"a", "b"})),
        ([held("a", HEAVY_QUEUE)] * 2, Search([HEAVY_QUEUE], {"a"})),
        ([held("a", HEAVY_QUEUE)] * 2 + [held("b")], Search([*QUEUES], {"a", "b"})),
        ([held("a", HEAVY_QUEUE)] * 2 + [held("b", HEAVY_QUEUE)], Search([LIGHT_QUEUE], {"a", "b"})),
    ],
    ids=["empty", "room", "full", "spare in use", "shared", "heavy", "heavy and full", "heavy spare in use"],
)
def test_what_is_looked_for(slots: list[Any], search: Search | None) -> None:
    assert spare().search(slots) == search


def test_none_is_spared_where_the_operator_says_so() -> None:
    assert spare(spare=0).search([held("a")] * 3) is None


def test_a_worker_that_stays_full_looks_once_per_poll() -> None:
    full, patient = [held("a")] * 3, spare(poll_seconds=600)
    assert patient.search(full) is not None
    assert patient.search(full) is None
