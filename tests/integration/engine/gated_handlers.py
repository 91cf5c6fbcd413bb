"""A task that says that it has begun and stays until the test lets it go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from geomill.sdk import HandlerContext, register_handler


@dataclass
class TaskGate:
    begun: list[str] = field(default_factory=list)
    """The jobs of the tasks, in the order in which they began."""
    running: list[tuple[str, asyncio.Event]] = field(default_factory=list)
    open: bool = False

    async def pass_through(self, job_id: str) -> None:
        self.begun.append(job_id)
        if self.open:
            return
        ticket = (job_id, asyncio.Event())
        self.running.append(ticket)
        try:
            await ticket[1].wait()
        finally:
            self.running.remove(ticket)

    def let_go(self, job_ids: Any) -> None:
        """One running task of these jobs ends."""
        next(event for job_id, event in self.running if job_id in job_ids and not event.is_set()).set()

    def let_all_go(self) -> None:
        self.open = True
        for _, event in self.running:
            event.set()


gate = TaskGate()
"""Handlers are functions of a module, so what they share with a test is, too."""


def new_gate() -> TaskGate:
    global gate
    gate = TaskGate()
    return gate


@register_handler("gated", timeout_seconds=600)
async def gated(ctx: HandlerContext[dict[str, Any]]) -> dict[str, Any]:
    await gate.pass_through(ctx.job_id)
    return {}
