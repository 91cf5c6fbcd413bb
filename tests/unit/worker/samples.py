from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from geomill.domain.engine.message import TaskMessage
from geomill.queues.postgres import Delivery
from geomill.worker.notes import Notebook, TaskNotes
from geomill.worker.slots import Slot


def delivery(sequence: int = 1) -> Delivery:
    return Delivery(sequence, "functionapp-tasks", f"task{sequence}", "{}", 1, 1, datetime.now(UTC))


def message(**fields: Any) -> TaskMessage:
    defaults = {"task_id": "t", "job_id": "j", "node_id": "n", "handler": "h", "timeout_seconds": 10, "attempt": 1}
    return TaskMessage.model_validate(defaults | fields)


def notes(notebook: Notebook | None = None, sequence: int = 1) -> TaskNotes:
    return TaskNotes(notebook or Notebook(lambda: None), delivery(sequence), message())


def slot(**fields: Any) -> Slot:
    return Slot(delivery(), message(**fields), notes(), leased=0.0)
