"""The hot statements look rows up by their keys, also if they were planned when the tables were empty.

A vacuum of an empty queue tells the planner that it has no rows, and the plan that is made then serves when it is full.
"""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

from geomill.queues import postgres
from geomill.sql import queries
from geomill.store.pool import HOT
from tests.rounds import round_statement

TABLES = ("dag_queue", "dag_inbox", "dag_jobs", "dag_node_states", "dag_task_results", "dag_checkpoints")
STATEMENTS = {
    **{
        f"queue.{name}": getattr(queries("queue"), name)
        for name in ("take", "look", "renew", "lost", "take_back", "precedents")
    },
    "queue.lease": postgres.lease_statement(),
    "queue.lease_lines": postgres.lease_lines_statement(),
    "queue.lines": postgres.lines_statement(),
    "queue.report_progress": queries("queue").report_progress,
    "inbox.settle": queries("inbox").settle,
    "inbox.peek": queries("inbox").peek,
    "nodes.results": queries("nodes").results,
    "nodes.item_outcomes": queries("nodes").item_outcomes,
    **{f"retention.{name}": getattr(queries("retention"), name) for name in ("mark", "finish", "delete_dead_letters")},
    "retention.delete_rows": queries("retention").delete_rows,
    "retention.delete_jobs": queries("retention").delete_jobs,
    **{f"checkpoints.{name}": getattr(queries("checkpoints"), name) for name in ("save", "read", "announce")},
    "rounds": round_statement(
        "taken", "inserted", "updated", "items", "completed", "spread", "sent", "noted", "decided"
    ),
    "rounds.summarised": round_statement("summarised"),
    "rounds.withdrawn": round_statement("withdrawn"),
    "rounds.claim": round_statement(
        "claimed", "created", "inserted", "spread", "sent", "noted", "called", fence="unclaimed"
    ),
}
KEYS = re.compile(r"Join Filter: .*(sequence|job_id|task_id\)::text =|message_id)")


@pytest.fixture
def emptied(database):
    with psycopg.connect(database, autocommit=True, prepare_threshold=None) as conn:
        rows = "SELECT 'q', n, '{}' FROM generate_series(1, 500) AS n"
        conn.execute(f"INSERT INTO dagapp.dag_queue (queue_name, message_id, body) {rows}")
        conn.execute("DELETE FROM dagapp.dag_queue")
        for table in TABLES:
            conn.execute(f"VACUUM ANALYZE dagapp.{table}")
        for setting in HOT:
            conn.execute(setting)
        yield conn


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_are_looked_up_by_their_keys_although_the_tables_are_empty(emptied, name: str) -> None:
    plan = explain(emptied, STATEMENTS[name])
    assert not KEYS.search(plan), plan
    assert "Seq Scan on dag_" not in plan, plan
    assert "Sort  " not in plan, plan


@pytest.mark.parametrize("name", ["lease", "lease_lines", "lines", "take"])
def test_the_lines_of_a_queue_are_ranges_of_its_index(emptied, name: str) -> None:
    """The cost depends on the number of lines, not on their length."""
    plan = explain(emptied, STATEMENTS[f"queue.{name}"])
    conditions = re.findall(r"using idx_dag_queue_ready.*?Index Cond: (.*)", plan, re.DOTALL | re.MULTILINE)
    assert conditions, plan
    assert "idx_dag_queue_message" not in plan, plan
    if name in ("lease", "lines"):
        assert "ROW(priority, (tenant)::text) < ROW(" in plan, plan
    if name != "lines":
        assert re.search(r"Index Cond: .*queue_name.*priority = .*tenant\)::text = ", plan), plan


def explain(conn, statement: str) -> str:
    """The generic plan."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    text = re.sub(r"%\((\w+)\)[sbt]", number, statement).rstrip().rstrip(";")
    conn.execute(f"PREPARE hot AS {text}".encode())
    rows = conn.execute(f"EXPLAIN EXECUTE hot ({', '.join(['NULL'] * len(names))})").fetchall()
    conn.execute("DEALLOCATE hot")
    return "\n".join(line for (line,) in rows)


USUAL = {
    **{
        name: STATEMENTS[name]
        for name in ("queue.lease", "queue.lease_lines", "queue.look", "inbox.settle", "inbox.peek")
    },
    "claim": round_statement("claimed", "created", "inserted", "sent", "noted", "called", fence="unclaimed"),
    "step": round_statement("updated", "sent", "noted", "taken", "called"),
    "verdict": round_statement("updated", "noted", "decided", "taken"),
    "items": round_statement("updated", "completed", "spread", "taken"),
}


@pytest.mark.parametrize("name", USUAL)
def test_psycopg_remembers_the_hot_statements(name: str) -> None:
    """psycopg parses a longer statement again at each use, which takes longer than the server needs to run it."""
    assert len(USUAL[name]) <= MAX_CACHED_STATEMENT_LENGTH
