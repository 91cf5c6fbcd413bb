"""Responses about circuits of handlers."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from geomill.domain.engine.circuit import Circuit, CircuitState


class CircuitView(BaseModel):
    handler: str
    state: CircuitState
    failures: int = Field(description="Failures in a row, with the same code")
    error_code: str
    error_message: str
    opened_at: datetime | None
    probe_at: datetime | None = Field(description="When the next task may run")
    updated_at: datetime

    @classmethod
    def of(cls, circuit: Circuit) -> Self:
        return cls(**{name: getattr(circuit, name) for name in CircuitView.model_fields})


class CircuitList(BaseModel):
    circuits: list[CircuitView]
