from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from geomill.domain.engine.job import Job
from geomill.store.pool import Pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, registry_of

HANDLERS = "tests.integration.worker.handlers"


def workflow(handler: str, params: dict[str, Any], **node: Any) -> str:
    """One task and nothing else, tried once unless said otherwise."""
    task = {"type": "task", "handler": handler, "params": params, "next": "END", "retry": {"max_attempts": 1}, **node}
    nodes = {"START": {"type": "start", "next": "work"}, "work": task, "END": {"type": "end"}}
    return json.dumps({"workflow_id": handler, "name": handler, "nodes": nodes})


class TaskBench(EnginePlatform):
    """A platform on which one task is tried out."""

    def offer(self, handler: str, params: dict[str, Any] | None = None, **node: Any) -> str:
        """The id of a workflow of this one task, which the orchestrator knows."""
        self.offer_workflow(workflow(handler, params or {}, **node))
        return handler

    def offer_workflow(self, text: str) -> None:
        self.workflow_registry._workflows |= registry_of(self.registry, text)._workflows

    async def attempts(self) -> list[dict[str, Any]]:
        return await self.rows(
            "SELECT attempt, status::text, error_code, error_message, output, retryable"
            " FROM dagapp.dag_task_results ORDER BY attempt"
        )

    async def only_attempt(self) -> dict[str, Any]:
        (attempt,) = await self.attempts()
        return attempt

    async def try_out(self, handler: str, params: dict[str, Any] | None = None, **node: Any) -> Job:
        return await self.run(self.offer(handler, params, **node))


@pytest.fixture
async def bench(database: str, pool: Pool) -> AsyncIterator[TaskBench]:
    registry = handlers_of(HANDLERS)
    new_bench = TaskBench(database, pool, registry_of(registry), registry)
    new_bench.orchestrator(scan_seconds=0.1)
    yield new_bench
    await new_bench.shutdown()
