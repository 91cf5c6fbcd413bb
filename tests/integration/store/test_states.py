"""The tables refuse what the machines forbid, and nothing else."""

from __future__ import annotations

from itertools import permutations

import psycopg
import pytest

from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, JobStatus, NodeStatus
from geomill.store.describe import ILLEGAL_TRANSITION

ENDED = ("completed", "failed", "skipped", "cancelled")

INSERT_DEFINITION = """
    INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body) VALUES ('h', 'w', 1, '{}')
"""
INSERT_JOB = """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, definition_hash,
                                 status, started_at, completed_at)
    VALUES (%(id)s, 'w', 1, 'h', %(status)s, now(), CASE WHEN %(ended)s THEN now() END)
"""
INSERT_NODE = """
    INSERT INTO dagapp.dag_node_states (job_id, node_id, status, dispatched_at, completed_at)
    VALUES ('j', %(id)s, %(status)s, now(), CASE WHEN %(ended)s THEN now() END)
"""
UPDATE_JOB = """
    UPDATE dagapp.dag_jobs SET status = %(status)s, completed_at = CASE WHEN %(ended)s THEN now() END
    WHERE job_id = %(id)s
"""
UPDATE_NODE = """
    UPDATE dagapp.dag_node_states SET status = %(status)s, completed_at = CASE WHEN %(ended)s THEN now() END
    WHERE job_id = 'j' AND node_id = %(id)s
"""


def row(key, status):
    return {"id": key, "status": status.value, "ended": status in ENDED}


@pytest.fixture
async def stocked(migrated):
    await migrated.execute(INSERT_DEFINITION)
    await migrated.execute(INSERT_JOB, row("j", JobStatus.RUNNING))
    return migrated


@pytest.mark.parametrize(
    ("machine", "states", "table", "insert", "update"),
    [
        (JOB_MACHINE, JobStatus, "dag_jobs", INSERT_JOB, UPDATE_JOB),
        (NODE_MACHINE, NodeStatus, "dag_node_states", INSERT_NODE, UPDATE_NODE),
    ],
    ids=["job", "node"],
)
async def test_every_pair_of_states(stocked, machine, states, table, insert, update):
    for source, target in permutations(states, 2):
        key = f"{source}-{target}"
        await stocked.execute(insert, row(key, source))
        if target in machine.commits[source]:
            await stocked.execute(update, row(key, target))
            continue
        with pytest.raises(psycopg.DatabaseError) as caught:
            await stocked.execute(update, row(key, target))
        assert caught.value.sqlstate == ILLEGAL_TRANSITION, key
        diagnostics = caught.value.diag
        assert diagnostics.message_primary == f"dagapp.{table}: status cannot go from {source} to {target}"
        assert (diagnostics.schema_name, diagnostics.table_name) == ("dagapp", table)
        assert diagnostics.column_name == "status"


async def test_staying_in_a_final_state_is_no_transition(stocked):
    for state in JobStatus:
        await stocked.execute(INSERT_JOB, row(state.value, state))
        await stocked.execute(UPDATE_JOB, row(state.value, state))


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE dagapp.dag_jobs SET status = 'completed'", "dag_jobs_completed_at"),
        ("UPDATE dagapp.dag_jobs SET completed_at = now()", "dag_jobs_completed_at"),
        ("UPDATE dagapp.dag_jobs SET started_at = NULL", "dag_jobs_started_at"),
        ("UPDATE dagapp.dag_jobs SET priority = 11", "dag_jobs_priority"),
        (
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, status) VALUES ('j', 'n', 'failed')",
            "dag_node_states_completed_at",
        ),
        (
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, status) VALUES ('j', 'n', 'running')",
            "dag_node_states_dispatched_at",
        ),
        (
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, item_index) VALUES ('j', 'n', -2)",
            "dag_node_states_item_index",
        ),
        (
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body, lease_token) VALUES ('q', 'm', '{}', 1)",
            "dag_queue_lease",
        ),
        ("INSERT INTO dagapp.dag_schedules (schedule_id, workflow_id) VALUES ('s', 'w')", "dag_schedules_timing"),
    ],
)
async def test_checks_tie_times_to_states(stocked, statement, constraint):
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        await stocked.execute(statement)
    assert caught.value.diag.constraint_name == constraint


async def test_a_bare_insert_has_the_defaults_of_the_model(stocked):
    await stocked.execute("INSERT INTO dagapp.dag_node_states (job_id, node_id) VALUES ('j', 'n')")
    cursor = await stocked.execute("SELECT status::text, item_index, attempt FROM dagapp.dag_node_states")
    assert await cursor.fetchone() == ("pending", -1, 0)


async def test_deleting_a_job_takes_its_rows_along_and_a_pinned_definition_stays(stocked):
    await stocked.execute(INSERT_NODE, row("n", NodeStatus.READY))
    await stocked.execute("UPDATE dagapp.dag_node_states SET attempt = 2")
    await stocked.execute(
        "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, attempt, status)"
        " VALUES ('j:n:1', 'j', 'n', 1, 'failed'), ('j:n:2', 'j', 'n', 2, 'completed')"
    )
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await stocked.execute("DELETE FROM dagapp.dag_definitions")
    await stocked.execute("DELETE FROM dagapp.dag_jobs")
    cursor = await stocked.execute(
        "SELECT (SELECT count(*) FROM dagapp.dag_node_states), (SELECT count(*) FROM dagapp.dag_task_results)"
    )
    assert await cursor.fetchone() == (0, 0)


async def test_deleting_a_job_takes_along_results_of_items_that_have_no_rows_yet(stocked):
    await stocked.execute(
        "INSERT INTO dagapp.dag_node_states (job_id, node_id, status, attempt, dispatched_at, items_total, items_sent)"
        " VALUES ('j', 'each', 'running', 1, now(), 3, 2)"
    )
    await stocked.execute(
        "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, item_index, attempt, status)"
        " VALUES ('j:each[0]:1', 'j', 'each', 0, 1, 'completed'), ('j:each[1]:1', 'j', 'each', 1, 1, 'completed')"
    )
    await stocked.execute("DELETE FROM dagapp.dag_jobs")
    cursor = await stocked.execute("SELECT count(*) FROM dagapp.dag_task_results")
    assert await cursor.fetchone() == (0,)
