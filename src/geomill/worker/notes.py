"""What handlers say while they run, gathered until the worker writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from geomill.domain.jsonvalue import NotJson, to_json
from geomill.domain.message import TaskMessage
from geomill.queues.postgres import Delivery
from geomill.sdk.result import HandlerError


@dataclass(slots=True)
class Said:
    """The latest progress and checkpoint of one task that are not written yet."""

    delivery: Delivery
    message: TaskMessage
    progress: tuple[float, str] | None = None
    checkpoint: tuple[str, str] | None = None


@dataclass
class Notebook:
    """Only the latest of each kind is kept per task: what was said before no longer matters."""

    wake: Callable[[], None]
    _said: dict[int, Said] = field(default_factory=dict)

    def of(self, delivery: Delivery, message: TaskMessage) -> TaskNotes:
        return TaskNotes(self, delivery, message)

    def entry(self, delivery: Delivery, message: TaskMessage) -> Said:
        self.wake()
        return self._said.setdefault(delivery.sequence, Said(delivery, message))

    def put_back(self, said: list[Said]) -> None:
        """What could not be written, unless something newer was said meanwhile."""
        for note in said:
            newer = self._said.setdefault(note.delivery.sequence, note)
            newer.progress = newer.progress or note.progress
            newer.checkpoint = newer.checkpoint or note.checkpoint

    def take(self) -> list[Said]:
        taken, self._said = list(self._said.values()), {}
        return taken


@dataclass(frozen=True)
class TaskNotes:
    """The `Reporter` of one task. May be called from any thread: each call is one assignment."""

    notebook: Notebook
    delivery: Delivery
    message: TaskMessage

    def progress(self, fraction: float, message: str) -> None:
        self.notebook.entry(self.delivery, self.message).progress = (fraction, message[:200])

    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None:
        try:
            text = to_json(dict(data))
        except NotJson as error:
            raise HandlerError(f"the checkpoint {phase!r} cannot be stored: {error}", retryable=False) from error
        self.notebook.entry(self.delivery, self.message).checkpoint = (phase[:64], text)
