from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.engine.job import Job
from geomill.domain.ids import new_id
from geomill.sdk.registry import load_handlers
from geomill.store.pool import Pool
from geomill.workflows.registry import WorkflowRegistry


@pytest.fixture(scope="session")
def workflow_registry() -> WorkflowRegistry:
    queues = ("functionapp-tasks", "container-tasks", "dag-worker-tasks")
    return WorkflowRegistry.load([], handlers=load_handlers().info, queues=queues)


class JobDatabase:
    """Short ways to see and change rows."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    async def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(query, values)
            return await cursor.fetchall() if cursor.description else []

    async def ended_job(self, url: str | None) -> Job:
        """Return a job that was refused before it ran: it has a verdict and no run."""
        query = """
            INSERT INTO dagapp.dag_jobs
                (job_id, workflow_id, status, started_at, completed_at, callback_url, correlation_id, error_message)
            VALUES (%(job_id)s, 'hello_world', 'failed', now(), now(), %(url)s, 'mine', 'it went wrong')
            RETURNING *"""
        (row,) = await self.rows(query, job_id=new_id(), url=url)
        return Job.from_row(row)

    async def events(self, job_id: str) -> list[dict[str, Any]]:
        query = "SELECT * FROM dagapp.dag_job_events WHERE job_id = %(job_id)s ORDER BY event_id"
        return await self.rows(query, job_id=job_id)


@pytest.fixture
def db(pool: Pool) -> JobDatabase:
    return JobDatabase(pool)
