"""The circuit of a handler: after repeated failures of one kind its tasks wait until a probe succeeds.

    closed ──failures in a row──► open ──open_seconds──► one task is let through ──it succeeds──► closed
                                   ▲                                │
                                   └────────────it fails────────────┘

A task that waits has not failed; it stays in its queue. Only retryable failures count. A refused file, for example,
says nothing about the next file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from geomill.domain.entity import Check, Entity, Key, Name, Now


class CircuitBreaker(BaseModel):
    """When the circuit of a handler opens, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: Annotated[
        int, Field(ge=1, le=10_000, description="Failures of one kind in a row that open the circuit")
    ] = 10
    open_seconds: Annotated[float, Field(gt=0, le=86_400, description="Seconds until one task may probe")] = 30.0


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"


class Circuit(Entity):
    """The consecutive failures of a handler, over all workers. A handler without a row has none."""

    __sql_table__: ClassVar = "dag_circuits"
    __sql_primary_key__: ClassVar = ("handler",)
    __sql_checks__: ClassVar = (Check("dag_circuits_open", "(opened_at IS NULL) = (probe_at IS NULL)"),)
    __sql_storage__: ClassVar = {"fillfactor": "50"}

    handler: Key
    failures: Annotated[int, Field(ge=0)] = Field(default=0, description="In a row, with the same code")
    error_code: Name = ""
    error_message: str = ""
    opened_at: AwareDatetime | None = Field(default=None, description="Null while the circuit is closed")
    probe_at: AwareDatetime | None = Field(default=None, description="When the next task may run")
    updated_at: Now

    @property
    def state(self) -> CircuitState:
        return CircuitState.OPEN if self.opened_at else CircuitState.CLOSED
