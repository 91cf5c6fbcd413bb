"""A run of a pipeline, as Data Factory describes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

EXPORT_ID = "exportId"
"""The parameter of the pipeline by which a run is found again."""
LONGEST_MESSAGE = 500


class PipelineRunState(StrEnum):
    QUEUED = "Queued"
    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELING = "Canceling"
    CANCELLED = "Cancelled"


ENDED = (PipelineRunState.SUCCEEDED, PipelineRunState.FAILED, PipelineRunState.CANCELLED)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    run_id: str
    state: PipelineRunState
    export_id: str
    begun_at: str
    """As the answer writes it. Such texts sort by time."""
    message: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def useful(self) -> bool:
        """Whether it copies the files, or has copied them."""
        return self.state in (PipelineRunState.QUEUED, PipelineRunState.IN_PROGRESS, PipelineRunState.SUCCEEDED)

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        """Raises `KeyError`, `TypeError` or `ValueError` for an answer of another shape."""
        parameters = answer.get("parameters") or {}
        return cls(
            run_id=str(answer["runId"]),
            state=PipelineRunState(answer["status"]),
            export_id=str(parameters.get(EXPORT_ID, "")),
            begun_at=str(answer.get("runStart") or answer.get("lastUpdated") or ""),
            message=str(answer.get("message") or "")[:LONGEST_MESSAGE],
        )
