"""However many jobs there are: every list, count and search reads a bounded number of them through an index."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from geomill.domain.states import JobStatus
from geomill.sql import queries
from geomill.store import job_lists
from geomill.store.job_lists import JobFilter
from geomill.store.pool import Connection, Pool
from tests.integration.store.test_asset_plans import plan_of, scanned

ROWS = 20_000
FILL = """
INSERT INTO dagapp.dag_jobs (
    job_id, workflow_id, status, submitted_by, correlation_id, asset_id, error_message, parked_at, started_at,
    completed_at, created_at, definition_hash
)
SELECT md5(n::text), 'w' || n %% 40, s.status, 'user' || n %% 50, 'c' || n / 20, 'a' || n / 10,
       CASE WHEN s.status = 'failed' THEN 'the file ' || n || ' is broken' END,
       CASE WHEN n %% 4000 = 2 THEN now() END, now(), CASE WHEN s.status <> 'running' THEN now() END,
       now() - n * interval '1 second', 'h'
FROM generate_series(1, %s) AS n,
LATERAL (SELECT (ARRAY['failed', 'cancelled', 'running', 'completed'])[least(n %% 100 + 1, 4)]::dagapp.job_status
         AS status) AS s
"""
LATER = datetime.now(UTC) - timedelta(hours=1)
FILTERS = {
    "everything": JobFilter(),
    "workflow": JobFilter(workflow_id="w7"),
    "failed": JobFilter(statuses=(JobStatus.FAILED,)),
    "failed of a workflow": JobFilter(statuses=(JobStatus.FAILED,), workflow_id="w0"),
    "failed of a workflow without failures": JobFilter(statuses=(JobStatus.FAILED,), workflow_id="w7"),
    "active": JobFilter(statuses=(JobStatus.PENDING, JobStatus.RUNNING)),
    "asset": JobFilter(asset_id="a7"),
    "asset without jobs": JobFilter(asset_id="nobody"),
    "submitter": JobFilter(submitted_by="user7"),
    "correlation": JobFilter(correlation_id="c7"),
    "time": JobFilter(created_from=LATER, created_to=LATER + timedelta(minutes=5)),
    "error": JobFilter(error="FILE 1700 "),
    "error nobody has": JobFilter(error="nobody has this"),
    "parked": JobFilter(parked=True),
    "paused": JobFilter(paused=True),
}


@pytest.fixture
async def full(pool: Pool) -> AsyncIterator[Connection]:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)"
            " VALUES ('h', 'w', 1, '{}')"
        )
        await conn.execute(FILL, [ROWS])
        await conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body)"
            " SELECT 'dag-jobs', 'm' || n, '{}' FROM generate_series(1, 5000) AS n"
        )
        await conn.execute("VACUUM ANALYZE dagapp.dag_jobs")
        await conn.execute("VACUUM ANALYZE dagapp.dag_queue")
        yield conn


@pytest.mark.parametrize("what", FILTERS)
async def test_lists_and_counts_read_through_an_index(full: Connection, what: str) -> None:
    for by_status, name in ((False, "page"), (False, "edges"), (True, "counts")):
        question = job_lists._question(FILTERS[what], by_status=by_status)
        statement = question.statement(getattr(queries("job_lists"), name))
        for before in (None, (datetime.now(UTC), "x")):
            plan = await plan_of(full, statement, question.asked(100, before, limit=51))
            assert scanned(plan) == [], (name, json.dumps(plan, indent=1))
            lost = sum(
                node.get("Rows Removed by Filter", 0) for node in plan if node.get("Relation Name") == "dag_jobs"
            )
            assert lost < 500, (name, json.dumps(plan, indent=1))


async def test_submissions_are_read_through_an_index(full: Connection) -> None:
    for name in ("waiting_page", "waiting_edges", "waiting_counts"):
        statement = job_lists._waiting_statement(getattr(queries("job_lists"), name))
        for before_id in (None, "m77"):
            parameters = job_lists._of_waiting("dag-jobs", JobFilter(), 100, before_id) | {"limit": 51}
            plan = await plan_of(full, statement, parameters)
            assert scanned(plan) == [], (name, json.dumps(plan, indent=1))


async def test_a_page_with_rare_matches_is_short_and_goes_on(full: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_lists, "EXAMINED", 1000)
    chosen = JobFilter(submitted_by="user0", statuses=(JobStatus.FAILED,))
    found, end, pages = [], None, 0
    while pages == 0 or end:
        page = await job_lists.page(full, chosen, limit=60, before=end)
        found += [job.job_id for job in page.jobs]
        end, pages = page.end, pages + 1
    row = await (
        await full.execute(
            "SELECT count(*) AS n FROM dagapp.dag_jobs WHERE status = 'failed' AND submitted_by = 'user0'"
        )
    ).fetchone()
    assert row is not None
    assert len(found) == len(set(found)) == row["n"] > 100
    assert pages > 1


async def test_every_match_is_found_once_when_some_statuses_are_cut_and_others_not(
    full: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_lists, "EXAMINED", 90)
    chosen = JobFilter(error="7", parked=False, statuses=tuple(JobStatus))
    found, end, pages = [], None, 0
    while pages == 0 or end:
        page = await job_lists.page(full, chosen, limit=20, before=end)
        found += [job.job_id for job in page.jobs]
        assert all(chosen.matches(job) for job in page.jobs)
        end, pages = page.end, pages + 1
    row = await (
        await full.execute(
            "SELECT count(*) AS n FROM dagapp.dag_jobs WHERE error_message LIKE '%7%' AND parked_at IS NULL"
        )
    ).fetchone()
    assert row is not None
    assert len(found) == len(set(found)) == row["n"]
    assert pages > 3


async def test_counts_say_where_they_ended(full: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = await job_lists.counts(full, JobFilter())
    assert counts.jobs == {"pending": 0, "running": 200, "completed": 19400, "failed": 200, "cancelled": 200}
    assert counts.at_least == ()
    monkeypatch.setattr(job_lists, "COUNTED", 1000)
    counts = await job_lists.counts(full, JobFilter())
    assert counts.jobs["completed"] == 1000
    assert counts.at_least == ("completed",)
    counts = await job_lists.counts(full, JobFilter(submitted_by="user7", statuses=(JobStatus.COMPLETED,)))
    assert (counts.jobs, counts.at_least) == ({"completed": 400}, ())


FILL_NODES = """
INSERT INTO dagapp.dag_node_states (job_id, node_id, item_index, status, task_id, attempt, started_at, completed_at)
SELECT 'j' || n %% 200, 'each', n / 200, 'completed', 't' || n, 1, now() - interval '1 second', now()
FROM generate_series(0, %s) AS n
"""
FILL_RESULTS = """
INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, item_index, attempt, status)
SELECT 't' || n, 'j' || n %% 200, 'each', n / 200, 1, 'completed' FROM generate_series(0, %s) AS n
"""
FAN_OUT = {
    "job_id": "j7",
    "node_id": "each",
    "item_index": 7,
    "indexes": [1, 2, 3],
    "items_sent": 100,
    "items_total": 200,
    "buckets": 100,
    "ended": False,
    "queue_name": "q",
    "before_index": "j7:each[",
    "after_index": "]:1",
    "after": -1,
    "before": None,
    "limit": 11,
    "status": "failed",
    "leased": [],
    "node_ids": ["each"],
    "task_id": "t7",
    "task_ids": ["t7", "t8"],
}
"""The parameters of all statements."""
OF_NODES = (
    "node", "sources", "message", "attempts", "checkpoint", "items", "indexes_with_status", "indexes_leased",
    "indexes_sent", "indexes_slowest", "item_counts", "item_rows",
)  # fmt: skip


@pytest.fixture
async def full_of_nodes(full: Connection) -> Connection:
    await full.execute(FILL_NODES, [ROWS])
    await full.execute(FILL_RESULTS, [ROWS])
    for table in ("dag_node_states", "dag_task_results", "dag_task_logs", "dag_job_events"):
        await full.execute(f"VACUUM ANALYZE dagapp.{table}")  # type: ignore[arg-type]  a name of ours
    return full


@pytest.mark.parametrize("name", OF_NODES)
async def test_nodes_and_items_are_found_by_their_keys(full_of_nodes: Connection, name: str) -> None:
    plan = await plan_of(full_of_nodes, getattr(queries("node_views"), name), FAN_OUT)
    assert [table for table in scanned(plan) if table != "dag_checkpoints"] == [], json.dumps(plan, indent=1)
    read = sum(
        node["Actual Rows"] * node["Actual Loops"] for node in plan if node.get("Relation Name") == "dag_node_states"
    )
    assert read <= (3 if name in ("items", "item_rows") else 210), json.dumps(plan, indent=1)
