"""Notes: the progress, checkpoints and log lines of handlers, collected until the worker writes them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from geomill.domain.engine.log import LONGEST_LINE, MOST_LINES
from geomill.domain.engine.message import TaskMessage
from geomill.queues.postgres import Delivery
from geomill.worker.context import checkpoint_text
from geomill.worker.tasklog import clean


@dataclass(slots=True)
class Note:
    """The notes of one task that are not written yet: the latest progress and checkpoint, and all lines."""

    delivery: Delivery
    message: TaskMessage
    progress: tuple[float, str] | None = None
    checkpoint: tuple[str, str] | None = None
    lines: list[tuple[str, str]] = field(default_factory=list)


class Notebook:
    """The notes of all tasks. A checkpoint wakes the worker at once; the rest waits for the next exchange."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.lock = threading.Lock()
        self._notes: dict[int, Note] = {}

    @property
    def pending(self) -> bool:
        return bool(self._notes)

    def entry(self, delivery: Delivery, message: TaskMessage) -> Note:
        """Return the note of a task. Use it only under the lock, because `take` may remove it at any time."""
        note = self._notes.get(delivery.sequence)
        if note is None:
            note = self._notes[delivery.sequence] = Note(delivery, message)
        return note

    def put_back(self, notes: Sequence[Note]) -> None:
        """Keep notes that could not be written. Newer progress and checkpoints take precedence."""
        with self.lock:
            for note in notes:
                newer = self._notes.setdefault(note.delivery.sequence, note)
                if newer is not note:
                    newer.progress = newer.progress or note.progress
                    newer.checkpoint = newer.checkpoint or note.checkpoint
                    newer.lines = note.lines + newer.lines

    def take(self) -> list[Note]:
        with self.lock:
            notes, self._notes = list(self._notes.values()), {}
        return notes


class TaskNotes:
    """The `Reporter` of one task, and the sink of its logger. May be called from any thread."""

    __slots__ = ("_delivery", "_lines", "_message", "_notebook", "limited", "spoke")

    def __init__(self, notebook: Notebook, delivery: Delivery, message: TaskMessage) -> None:
        self._notebook = notebook
        self._delivery = delivery
        self._message = message
        self._lines = 0
        self.spoke = 0.0
        """When the handler began, or last reported progress or a checkpoint."""
        self.limited: tuple[float, str] | None = None
        """The time limit that the handler has set for itself, and the error message for when it has passed."""

    def progress(self, fraction: float, message: str) -> None:
        self.spoke = time.monotonic()
        with self._notebook.lock:
            self._entry().progress = (fraction, clean(message)[:200])

    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None:
        self.keep(phase, checkpoint_text(phase, data))

    def limit(self, seconds: float | None, message: str) -> None:
        self.limited = None if seconds is None else (time.monotonic() + seconds, message)

    def keep(self, phase: str, text: str) -> None:
        self.spoke = time.monotonic()
        with self._notebook.lock:
            self._entry().checkpoint = (clean(phase)[:64], text)
        self._notebook.wake()

    def line(self, level: int, text: str) -> None:
        for part in clean(text).splitlines():
            if self._lines < MOST_LINES:
                self._lines += 1
                last = "further lines are not kept" if self._lines == MOST_LINES else part[:LONGEST_LINE]
                with self._notebook.lock:
                    self._entry().lines.append((logging.getLevelName(level), last))

    def _entry(self) -> Note:
        return self._notebook.entry(self._delivery, self._message)
