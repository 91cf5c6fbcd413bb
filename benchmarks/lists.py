"""Lists and searches of jobs, nodes, items and log lines among a million jobs with ten million nodes, through HTTP."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from httpx import ASGITransport, AsyncClient

from benchmarks.figures import Figure
from benchmarks.server import database
from geomill.api import create_app
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.jsonvalue import to_json
from geomill.sdk.registry import load_handlers
from geomill.settings import AccessSettings, QueueSettings
from geomill.store import keys
from geomill.store.pool import open_pool
from geomill.workflows.registry import WorkflowRegistry

JOBS = int(os.environ.get("BENCH_LIST_JOBS", "1000000"))
FAN_OUT_ITEMS = 100_000
FAN_OUTS = 10
NODES_OF_A_JOB = 9
REQUESTS = 200
LINES = 200_000
WAITING = 20_000

FILL_DEFINITION = """
INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body) VALUES ('h', 'fan_out_test', 1, %s)
"""
FILL_JOBS = """
INSERT INTO dagapp.dag_jobs (
    job_id, workflow_id, status, submitted_by, correlation_id, asset_id, input_params, error_message, failed_node_id,
    started_at, completed_at, created_at, submitted_at, definition_hash, owner_id
)
SELECT 'job-' || lpad(n::text, 10, '0'), 'w' || n %% 40, s.status, 'user' || n %% 50, 'c' || n / 20,
       CASE WHEN n %% 2 = 0 THEN 'a' || n / 10 END, jsonb_build_object('name', repeat('x', 200)),
       CASE WHEN s.status = 'failed' THEN 'the file data/' || n || '.tif cannot be opened: not a TIFF' END,
       CASE WHEN s.status = 'failed' THEN 'prepare' END, t.at, CASE WHEN s.status <> 'running' THEN t.at END,
       t.at, t.at, 'h', 'orch-' || n %% 4
FROM generate_series(1, %(jobs)s) AS n,
LATERAL (SELECT now() - (%(jobs)s - n) * interval '2.6 seconds' AS at) AS t,
LATERAL (SELECT CASE WHEN n %% 1000 = 7 THEN 'running' WHEN n %% 40 = 3 THEN 'failed' WHEN n %% 100 = 5 THEN 'cancelled'
                     ELSE 'completed' END::dagapp.job_status AS status) AS s
"""
FILL_NODES = """
INSERT INTO dagapp.dag_node_states (job_id, node_id, status, task_id, attempt, dispatched_at, started_at, completed_at)
SELECT j.job_id, 'node' || k, 'completed', j.job_id || ':node' || k || ':1', 1, now(), now(), now()
FROM generate_series(1, %(jobs)s) AS n, generate_series(1, %(nodes)s) AS k,
LATERAL (SELECT 'job-' || lpad(n::text, 10, '0') AS job_id) AS j
"""
FILL_FAN_OUTS = """
WITH parent AS (
    INSERT INTO dagapp.dag_node_states (job_id, node_id, status, items_total, items_sent, dispatched_at, completed_at)
    SELECT 'job-' || lpad(n::text, 10, '0'), 'each_item', 'completed', %(items)s, %(items)s, now(), now()
    FROM generate_series(1, %(fan_outs)s) AS n
)
INSERT INTO dagapp.dag_node_states (
    job_id, node_id, item_index, status, task_id, attempt, error_message, dispatched_at, started_at, completed_at
)
SELECT j.job_id, 'each_item', i, s.status, j.job_id || ':each_item[' || i || ']:1', 1,
       CASE WHEN s.status = 'failed' THEN 'broken' END, now(), now() - i %% 977 * interval '1 millisecond', now()
FROM generate_series(1, %(fan_outs)s) AS n, generate_series(0, %(items)s - 1) AS i,
LATERAL (SELECT 'job-' || lpad(n::text, 10, '0') AS job_id) AS j,
LATERAL (SELECT CASE WHEN i %% 5000 = 4999 THEN 'failed' ELSE 'completed' END::dagapp.node_status AS status) AS s
"""
FILL_RESULTS = """
INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, item_index, attempt, status, worker_id, started_at)
SELECT task_id, job_id, node_id, item_index, 1, status::text::dagapp.task_status, 'work-1', started_at
FROM dagapp.dag_node_states WHERE job_id = 'job-0000000001' AND node_id = 'each_item' AND item_index >= 0
"""
FILL_LINES = """
INSERT INTO dagapp.dag_task_logs (job_id, node_id, item_index, attempt, level, message)
SELECT 'job-0000000001', 'each_item', n %% 100000, 1, CASE WHEN n %% 5000 = 0 THEN 'ERROR' ELSE 'INFO' END, 'line ' || n
FROM generate_series(1, %(lines)s) AS n
"""
FILL_QUEUE = """
INSERT INTO dagapp.dag_queue (queue_name, message_id, body)
SELECT 'dag-jobs', 'wait-' || lpad(n::text, 10, '0'),
       jsonb_build_object('job_id', 'wait-' || lpad(n::text, 10, '0'), 'workflow_id', 'w' || n %% 40,
                          'submitted_by', 'user' || n %% 50)
FROM generate_series(1, %(waiting)s) AS n
"""
FAN_OUT = "/api/v1/jobs/job-0000000001/nodes/each_item"
ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "jobs: newest claimed": ("/api/v1/jobs", {"status": ["pending", "running", "completed", "failed", "cancelled"]}),
    "jobs: all, waiting ones first": ("/api/v1/jobs", {}),
    "jobs: waiting of a workflow": ("/api/v1/jobs", {"status": "queued", "workflow_id": "w7"}),
    "jobs: workflow": ("/api/v1/jobs", {"workflow_id": "w7", "status": "completed"}),
    "jobs: failed": ("/api/v1/jobs", {"status": "failed"}),
    "jobs: failed of a workflow that has none": ("/api/v1/jobs", {"status": "failed", "workflow_id": "w7"}),
    "jobs: asset": ("/api/v1/jobs", {"asset_id": "a777"}),
    "jobs: submitter": ("/api/v1/jobs", {"submitted_by": "user7"}),
    "jobs: failed of a submitter": ("/api/v1/jobs", {"submitted_by": "user3", "status": "failed"}),
    "jobs: correlation id": ("/api/v1/jobs", {"correlation_id": "c777"}),
    "jobs: error text, common": ("/api/v1/jobs", {"error": "not a TIFF"}),
    "jobs: error text nobody has": ("/api/v1/jobs", {"error": "no such text"}),
    "jobs: parked": ("/api/v1/jobs", {"parked": "true"}),
    "counts: all": ("/api/v1/jobs/counts", {}),
    "counts: workflow": ("/api/v1/jobs/counts", {"workflow_id": "w7"}),
    "counts: submitter": ("/api/v1/jobs/counts", {"submitted_by": "user7"}),
    "job with its nodes": ("/api/v1/jobs/job-0000017777", {}),
    "events of a job": ("/api/v1/jobs/job-0000017777/events", {}),
    "node": (FAN_OUT, {}),
    "items: by index": (f"{FAN_OUT}/items", {}),
    "items: failed": (f"{FAN_OUT}/items", {"state": "failed"}),
    "items: failed first": (f"{FAN_OUT}/items", {"order": "failed_first"}),
    "items: slowest": (f"{FAN_OUT}/items", {"order": "slowest"}),
    "items: summary": (f"{FAN_OUT}/items/summary", {}),
    "item": (f"{FAN_OUT}/items/77777", {}),
    "logs of a job": ("/api/v1/jobs/job-0000000001/logs", {}),
    "logs of an item": ("/api/v1/jobs/job-0000000001/logs", {"node_id": "each_item", "item_index": 77_777}),
    "logs: errors": ("/api/v1/jobs/job-0000000001/logs", {"level": "ERROR"}),
}


def run() -> Iterator[Figure]:
    with database() as url:
        begun = time.perf_counter()
        _fill(url)
        yield Figure(f"filled {JOBS:,} jobs", time.perf_counter() - begun, "s")
        for what, (path, params) in ROUTES.items():
            yield asyncio.run(_measure(url, what, path, params))


def _fill(url: str) -> None:
    registry = WorkflowRegistry.load((), handlers=load_handlers().info, queues=TASK_QUEUES)
    definition = to_json(registry.get("fan_out_test").body())
    sizes = {"jobs": JOBS, "nodes": NODES_OF_A_JOB, "items": FAN_OUT_ITEMS, "fan_outs": FAN_OUTS, "lines": LINES}
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SET synchronous_commit = off")
        conn.execute(FILL_DEFINITION, [definition])
        for table in ("dag_jobs", "dag_node_states"):
            conn.execute(f"ALTER TABLE dagapp.{table} DISABLE TRIGGER USER".encode())
        for statement in (FILL_JOBS, FILL_NODES, FILL_FAN_OUTS):
            conn.execute(statement, sizes)
        for table in ("dag_jobs", "dag_node_states"):
            conn.execute(f"ALTER TABLE dagapp.{table} ENABLE TRIGGER USER".encode())
        conn.execute(FILL_RESULTS)
        conn.execute(FILL_LINES, sizes)
        conn.execute(FILL_QUEUE, {"waiting": WAITING})
        for table in ("dag_jobs", "dag_node_states", "dag_task_results", "dag_task_logs", "dag_queue"):
            conn.execute(f"VACUUM ANALYZE dagapp.{table}".encode())


async def _measure(url: str, what: str, path: str, params: dict[str, Any]) -> Figure:
    async with _client(url) as client:
        return await _route(client, what, path, params)


async def _route(client: AsyncClient, what: str, path: str, params: dict[str, Any]) -> Figure:
    times = []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        answer = await client.get(path, params=params)
        times.append(1000 * (time.perf_counter() - begun))
        assert answer.status_code == 200, answer.text
    p99 = statistics.quantiles(times, n=100)[98]
    return Figure(f"{what}, p50", statistics.median(times), "ms", f"p99 {p99:.1f} ms")


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[AsyncClient]:
    """A client of a gateway in this process, with an administrator's key."""
    secret = Secret.new()
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        await keys.create(conn, secret, name=secret.key_id, roles=[Role.ADMIN], created_by="bench")
    app = create_app(url, WorkflowRegistry([]), QueueSettings(), AccessSettings())
    async with (
        app.router.lifespan_context(app),
        AsyncClient(
            transport=ASGITransport(app=app),
            base_url="http://127.0.0.1:8000",
            headers={"Authorization": f"Bearer {secret.reveal()}"},
        ) as client,
    ):
        yield client
