"""Which lines of the ledger count as work done again, and which do not."""

from __future__ import annotations

from tests.chaos.ledger import BEGIN, END, FAILED, LedgerEntry, Repeats, repeats


def line(what: str, at: float, *, attempt: int = 1, pid: int = 1, item: int = 0) -> LedgerEntry:
    return LedgerEntry(what, f"job:each[{item}]:{attempt}", "job", "each", item, attempt, pid, at)


def test_a_retry_of_a_failed_attempt_is_no_repeat() -> None:
    lines = [line(BEGIN, 1), line(FAILED, 2), line(BEGIN, 3, attempt=2), line(END, 4, attempt=2)]
    assert repeats(lines) == Repeats(begun_again=0, ended_again=0, at_once=0)


def test_what_ran_again_after_its_worker_was_lost_is_counted() -> None:
    lines = [line(BEGIN, 1), line(BEGIN, 3, pid=2), line(END, 4, pid=2), line(BEGIN, 1, item=1), line(END, 2, item=1)]
    assert repeats(lines) == Repeats(begun_again=1, ended_again=0, at_once=0)


def test_two_attempts_at_once_are_seen() -> None:
    lines = [line(BEGIN, 1), line(BEGIN, 3, pid=2), line(END, 4), line(END, 5, pid=2)]
    assert repeats(lines) == Repeats(begun_again=1, ended_again=1, at_once=1)


def test_one_after_the_other_is_not_at_once() -> None:
    lines = [line(BEGIN, 1), line(END, 2), line(BEGIN, 3, pid=2), line(END, 4, pid=2)]
    assert repeats(lines) == Repeats(begun_again=1, ended_again=1, at_once=0)
