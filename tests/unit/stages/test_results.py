"""A sequence of results that is read in pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.sdk import HandlerError
from geomill.stages.controller import TaskResult
from geomill.stages.results import TaskResults


def results(total: int, page: int) -> tuple[TaskResults, list[int]]:
    """Return results as a database gives them, and the places from which pages were read."""
    all_of_them = [TaskResult(f"t{place}", str(place)) for place in range(total)]
    read: list[int] = []

    def from_place(place: int) -> list[TaskResult]:
        read.append(place)
        return all_of_them[place : place + page]

    return TaskResults(total, from_place), read


@given(st.integers(0, 40), st.integers(1, 12), st.slices(40))
def test_it_is_what_a_list_would_be(total: int, page: int, part: slice) -> None:
    task_results, _ = results(total, page)
    indexes = [str(place) for place in range(total)]
    assert [result.task_index for result in task_results] == indexes
    assert [result.task_index for result in task_results[part]] == indexes[part]
    assert [result.task_index for result in reversed(task_results)] == indexes[::-1]
    assert (len(task_results), bool(task_results)) == (total, total > 0)


def test_each_page_is_read_once_on_the_way() -> None:
    task_results, read = results(10, 4)
    list(task_results)
    assert read == [0, 4, 8]
    assert task_results[-1].task_index == "9"
    assert read == [0, 4, 8]
    assert task_results[0].task_index == "0"
    assert read == [0, 4, 8, 0]


def test_one_inside_of_the_other() -> None:
    task_results, _ = results(5, 2)
    assert [(a.task_index, b.task_index) for a in task_results for b in task_results] == [
        (str(a), str(b)) for a in range(5) for b in range(5)
    ]


def test_what_is_not_there() -> None:
    task_results, _ = results(3, 2)
    with pytest.raises(IndexError, match="there is no result 3: the stage has 3 tasks"):
        task_results[3]
    gone = TaskResults(3, lambda _: [])
    with pytest.raises(HandlerError, match="the result of task 0 no longer exists"):
        list(gone)
