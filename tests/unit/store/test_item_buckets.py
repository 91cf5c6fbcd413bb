"""The items of a fan-out in buckets of neighbours."""

from __future__ import annotations

import pytest

from geomill.domain.states import NodeStatus
from geomill.store.item_buckets import MOST_BUCKETS, add_leased, add_without_rows, empty


@pytest.mark.parametrize("total", [0, 1, 7, 99, 100, 101, 250, 10_000, 12_345, 1_000_003])
def test_buckets_make_up_the_whole_list_in_its_order(total: int) -> None:
    buckets = empty(total)
    assert len(buckets) == min(total, MOST_BUCKETS)
    assert sum(bucket.size for bucket in buckets) == total
    ends = [-1, *(bucket.last for bucket in buckets)]
    assert all(bucket.first == end + 1 and bucket.size > 0 for bucket, end in zip(buckets, ends, strict=False))


@pytest.mark.parametrize("total", [7, 101, 250, 12_345])
def test_an_item_is_in_the_bucket_that_the_statement_computes(total: int) -> None:
    buckets = empty(total)
    for index in range(total):
        bucket = buckets[index * len(buckets) // total]
        assert bucket.first <= index <= bucket.last


def test_items_without_rows_are_sent_or_wait() -> None:
    buckets = empty(1000)
    buckets[0].states["completed"] = 4
    buckets[0].states["failed"] = 1
    add_leased(buckets, [5, 6], {})
    add_without_rows(buckets, 15, NodeStatus.PENDING)
    assert buckets[0].states == {"completed": 4, "failed": 1, "running": 2, "dispatched": 3}
    assert buckets[1].states == {"dispatched": 5, "pending": 5}
    assert buckets[2].states == {"pending": 10}


def test_a_leased_item_is_running_unless_its_row_knows_more() -> None:
    buckets = empty(4)
    for bucket, state in zip(buckets, ("dispatched", "running", "completed"), strict=False):
        bucket.states[state] = 1
    add_leased(buckets, [0, 1, 2, 3, 9], {0: "dispatched", 1: "running", 2: "completed"})
    add_without_rows(buckets, 4, NodeStatus.PENDING)
    assert [dict(bucket.states) for bucket in buckets] == [
        {"running": 1}, {"running": 1}, {"completed": 1}, {"running": 1},
    ]  # fmt: skip


def test_a_list_without_items_has_no_buckets() -> None:
    buckets = empty(0)
    add_leased(buckets, [0], {})
    add_without_rows(buckets, 0, NodeStatus.PENDING)
    assert buckets == []
