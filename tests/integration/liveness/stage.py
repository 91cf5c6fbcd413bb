"""A PostgreSQL server of its own, and roles as real processes with default settings."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from geomill.domain.engine.message import TASK_QUEUES, JobQueueMessage
from geomill.embedded import Cluster
from geomill.engine.submit import submit
from geomill.errors import DatabaseUnreachable
from geomill.sdk.registry import load_handlers
from geomill.store.connection import connect
from geomill.store.pool import open_pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.liveness.handlers import MORNING

ROOT = Path(__file__).parents[3]
HANDLERS = "tests.integration.liveness.handlers"
GEOMILL = str(Path(sys.executable).with_name("geomill"))
WORKFLOW = """
workflow_id: {name}
name: {name}
inputs:
  ledger: {{type: string}}
  key: {{type: string}}
  seconds: {{type: number}}
nodes:
  START: {{type: start, next: work}}
  work:
    type: task
    handler: liveness.{name}
    params: {{ledger: "{{{{ inputs.ledger }}}}", key: "{{{{ inputs.key }}}}", seconds: "{{{{ inputs.seconds }}}}"}}
    retry: {{max_attempts: {attempts}, backoff: none}}
    next: END
  END: {{type: end}}
"""
WORKFLOWS = {"nap": 1, "nap_aside": 1, "deadly": 2}
"""Name → attempts."""


PATIENCE = 300.0
"""Seconds. On a machine at load 20, everything takes ten times as long."""


def within(seconds: float) -> float:
    """How long that may take here: a process that waits for a processor cannot be on time."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class TaskLine(NamedTuple):
    word: str
    key: str
    at: float
    pid: int


@dataclass
class LivenessStage:
    cluster: Cluster
    url: str
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        self._workflows = self.folder / "workflows"
        self._workflows.mkdir()
        for name, attempts in WORKFLOWS.items():
            (self._workflows / f"{name}.yaml").write_text(WORKFLOW.format(name=name, attempts=attempts))
        self._log = self.folder / "roles.log"

    def start(self, role: str, *arguments: str, **settings: str) -> subprocess.Popen[bytes]:
        environ = {
            **os.environ,
            "GEOMILL_DATABASE_URL": self.url,
            "GEOMILL_HANDLERS": HANDLERS,
            "GEOMILL_WORKFLOWS": str(self._workflows),
            "GEOMILL_TASK_PROCESSES": "1",
            "PYTHONPATH": str(ROOT),
            **settings,
        }
        with self._log.open("ab") as log:
            process = subprocess.Popen([GEOMILL, role, *arguments], env=environ, cwd=ROOT, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill()  # also one that is stopped
        for process in self.processes:
            process.wait()

    async def submit(self, workflow_id: str, *keys: str, seconds: float) -> list[str]:
        registry = load_handlers([HANDLERS])
        workflow_registry = WorkflowRegistry.load([self._workflows], handlers=registry.info, queues=TASK_QUEUES)
        messages = [
            JobQueueMessage(
                workflow_id=workflow_id, input_params={"ledger": str(self.ledger), "key": key, "seconds": seconds}
            )
            for key in keys
        ]
        async with open_pool(self.url, size=1) as pool, pool.connection() as conn:
            for message in messages:
                await submit(conn, workflow_registry, "dag-jobs", message)
        return [message.job_id for message in messages]

    def wake(self) -> None:
        """End all naps."""
        self.ledger.with_name(MORNING).touch()

    async def rows(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        async with await connect(self.url) as conn:
            return await _fetch(conn, query, parameters)

    async def ready(self, count: int) -> None:
        """Wait until so many processes have registered."""
        await self.until_rows("SELECT 1 FROM dagapp.dag_instances HAVING count(*) >= %(count)s", count=count)

    async def until_rows(self, query: str, seconds: float = PATIENCE, **parameters: Any) -> list[dict[str, Any]]:
        """Wait until the query returns rows. A database that is away returns none."""
        async with asyncio.timeout(seconds):
            while True:
                with contextlib.suppress(psycopg.OperationalError, DatabaseUnreachable):
                    async with await connect(self.url) as conn:  # to connect costs more than to ask
                        while not (rows := await _fetch(conn, query, parameters)):  # noqa: ASYNC110
                            await asyncio.sleep(0.05)
                        return rows
                await asyncio.sleep(0.05)

    async def ended(self, job_ids: list[str], seconds: float = PATIENCE) -> dict[str, dict[str, Any]]:
        """Return status and error of all jobs, by job id."""
        query = (
            "SELECT array_agg(j) AS jobs FROM (SELECT job_id, status::text, error_message FROM dagapp.dag_jobs"
            " WHERE job_id = ANY(%(job_ids)s) AND completed_at IS NOT NULL) AS j HAVING count(*) = %(count)s"
        )
        await self.until_rows(query, seconds, job_ids=job_ids, count=len(job_ids))
        rows = await self.rows(
            "SELECT job_id, status::text, error_message FROM dagapp.dag_jobs WHERE job_id = ANY(%(job_ids)s)",
            job_ids=job_ids,
        )
        return {row["job_id"]: row for row in rows}

    def lines(self, word: str | None = None) -> list[TaskLine]:
        parsed = []
        for text in self.ledger.read_text().splitlines():
            parts = text.split()
            parsed.append(TaskLine(parts[0], parts[1], float(parts[2]), int(parts[3])))
        return [line for line in parsed if word in (None, line.word)]

    def counts(self, word: str) -> Counter[str]:
        return Counter(line.key for line in self.lines(word))

    async def until_begun(self, count: int, seconds: float = PATIENCE) -> None:
        await self.until(lambda: len(self.counts("begun")) >= count, seconds)

    async def until(self, true: Any, seconds: float = PATIENCE) -> None:
        async with asyncio.timeout(seconds):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def log(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-60:])

    @staticmethod
    def freeze(process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGSTOP)

    @staticmethod
    def thaw(process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGCONT)


async def _fetch(conn: psycopg.AsyncConnection[Any], query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        return await (await cursor.execute(query, parameters)).fetchall()  # type: ignore[arg-type]
