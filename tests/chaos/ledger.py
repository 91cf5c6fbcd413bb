"""The ledger of handlers, a file beside the database: one line when a task begins and one when it ends.

A line that was written outlives the process that wrote it, however that ends, and it needs no database. The times are
those of the machine's one monotonic clock, so that lines of different processes can be compared.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from geomill.sdk import HandlerContext

VARIABLE = "CHAOS_LEDGER"
BEGIN, END, FAILED = "begin", "end", "failed"


class LedgerEntry(NamedTuple):
    what: str
    task_id: str
    job_id: str
    node_id: str
    item_index: int
    attempt: int
    pid: int
    at: float

    @property
    def item(self) -> tuple[str, str, int]:
        return self.job_id, self.node_id, self.item_index


@contextmanager
def written(ctx: HandlerContext[Any]) -> Iterator[None]:
    _append(BEGIN, ctx)
    try:
        yield
    except BaseException:
        _append(FAILED, ctx)
        raise
    _append(END, ctx)


def _append(what: str, ctx: HandlerContext[Any]) -> None:
    line = LedgerEntry(
        what, ctx.task_id, ctx.job_id, ctx.node_id, ctx.item_index, ctx.attempt, os.getpid(), time.monotonic()
    )
    descriptor = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())  # one write: lines of two processes never mix
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Ledger:
    path: Path

    def lines(self) -> list[LedgerEntry]:
        if not self.path.exists():
            return []
        return [LedgerEntry(*json.loads(text)) for text in self.path.read_text(encoding="utf-8").splitlines()]

    def begun(self, job_id: str) -> int:
        """How many different tasks of a job have begun."""
        return len({line.item for line in self.lines() if line.what == BEGIN and line.job_id == job_id})


@dataclass(frozen=True)
class Repeats:
    """The work that was done more than once. A retry of a failed attempt does not count."""

    begun_again: int
    ended_again: int
    at_once: int
    """Attempts that ran while another one of the same item did."""


def begun_again(lines: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Beginnings of a task that had begun before and had not failed."""
    under_way: set[tuple[str, str, int]] = set()
    again = []
    for line in sorted(lines, key=lambda line: line.at):
        if line.what == BEGIN:
            again += [line] if line.item in under_way else []
            under_way.add(line.item)
        elif line.what == FAILED:
            under_way.discard(line.item)
    return again


def repeats(lines: Sequence[LedgerEntry]) -> Repeats:
    ended = Counter(line.item for line in lines if line.what == END)
    return Repeats(len(begun_again(lines)), sum(count - 1 for count in ended.values()), _overlaps(lines))


def _overlaps(lines: Sequence[LedgerEntry]) -> int:
    """Only attempts that ended by themselves: of one that was killed, nobody knows when."""
    spans: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    opened: dict[tuple[str, int], float] = {}
    for line in sorted(lines, key=lambda line: line.at):
        key = (line.task_id, line.pid)
        if line.what == BEGIN:
            opened[key] = line.at
        elif key in opened:
            spans.setdefault(line.item, []).append((opened.pop(key), line.at))
    return sum(1 for every in spans.values() for earlier, later in pairwise(sorted(every)) if later[0] < earlier[1])
