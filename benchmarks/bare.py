"""The limits of PostgreSQL on this machine, by the shortest psycopg programs that do the same commits."""

from __future__ import annotations

import multiprocessing
import time

import psycopg

TABLES = """
CREATE TABLE queue (id bigint PRIMARY KEY, body jsonb);
CREATE TABLE inbox (sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task bigint);
CREATE TABLE node (id bigint PRIMARY KEY, status text);
CREATE TABLE task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text, message_id text, body jsonb, priority smallint,
    lease bigint, leased_by text, leased_until timestamptz
);
CREATE UNIQUE INDEX ON task (queue, message_id);
CREATE INDEX ON task (queue, priority DESC, id) WHERE lease IS NULL;
CREATE TABLE result (message_id text PRIMARY KEY, output jsonb, reported_at timestamptz DEFAULT now());
"""


def prepare(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(TABLES)


def chain_step_milliseconds(url: str, steps: int = 400) -> float:
    """Two processes, two commits and two notifications per step."""
    with psycopg.connect(url, autocommit=True) as conn, psycopg.connect(url, autocommit=True) as ears:
        conn.execute("TRUNCATE queue, inbox, node")
        ears.execute("LISTEN owner")
        process = multiprocessing.get_context("spawn").Process(target=_worker, args=(url,))
        process.start()
        next(ears.notifies(timeout=20, stop_after=1))  # it is there
        begun = time.perf_counter()
        conn.execute("INSERT INTO queue VALUES (0, '{}')")
        conn.execute("SELECT pg_notify('worker', '')")
        done = 0
        while done < steps:
            for _ in ears.notifies(timeout=1, stop_after=1):
                pass
            with conn.transaction():
                tasks = conn.execute("DELETE FROM inbox RETURNING task").fetchall()
                for (task,) in tasks:
                    conn.execute("INSERT INTO node VALUES (%s, 'done')", [task])
                    conn.execute("INSERT INTO queue VALUES (%s, '{}')", [task + 1])
            if tasks:
                conn.execute("SELECT pg_notify('worker', '')")
                done += len(tasks)
        seconds = time.perf_counter() - begun
        process.terminate()
        process.join()
    return seconds * 1000 / steps


def _worker(url: str) -> None:
    take = "DELETE FROM queue WHERE id IN (SELECT id FROM queue LIMIT 10 FOR UPDATE SKIP LOCKED) RETURNING id"
    with psycopg.connect(url, autocommit=True) as conn, psycopg.connect(url, autocommit=True) as ears:
        ears.execute("LISTEN worker")
        conn.execute("SELECT pg_notify('owner', '')")
        while True:
            for _ in ears.notifies(timeout=1, stop_after=1):
                pass
            with conn.transaction():
                tasks = conn.execute(take).fetchall()
                if tasks:
                    conn.execute("INSERT INTO inbox (task) SELECT unnest(%s::bigint[])", [[task for (task,) in tasks]])
            if tasks:
                conn.execute("SELECT pg_notify('owner', '')")


def claim_complete_per_second(url: str, rows: int = 20_000, processes: int = 2) -> float:
    """Claim 100 with SKIP LOCKED, then complete 100 with their results, until all are done."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("TRUNCATE task, result")
        conn.execute(
            "INSERT INTO task (queue, message_id, body, priority) SELECT 'tasks', gen_random_uuid() || ':each:1',"
            " jsonb_build_object('job_id', gen_random_uuid(), 'params', '{}'::jsonb, 'handler', 'noop'), 0"
            " FROM generate_series(1, %s)",
            [rows],
        )
        conn.execute("VACUUM ANALYZE task")
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        pool.map(_nothing, range(processes))
        begun = time.perf_counter()
        pool.map(_claim_complete, [url] * processes, chunksize=1)
        return rows / (time.perf_counter() - begun)


def _nothing(_: int) -> None:
    time.sleep(0.2)


def _claim_complete(url: str) -> None:
    claim = (
        "UPDATE task SET lease = 1, leased_by = 'me', leased_until = now() + interval '1 minute' WHERE id IN ("
        " SELECT id FROM task WHERE queue = 'tasks' AND lease IS NULL ORDER BY priority DESC, id LIMIT 100"
        " FOR UPDATE SKIP LOCKED) RETURNING id, message_id, body"
    )
    complete = (
        "WITH gone AS (DELETE FROM task WHERE id = ANY(%b::bigint[]) AND lease = 1 RETURNING message_id)"
        " INSERT INTO result (message_id, output) SELECT message_id, '{}' FROM gone"
    )
    with psycopg.connect(url, autocommit=True) as conn:
        while tasks := conn.execute(claim).fetchall():
            conn.execute(complete, [[row[0] for row in tasks]])


def commit_milliseconds(url: str, commits: int = 300) -> float:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("INSERT INTO node VALUES (-1, 'x') ON CONFLICT DO NOTHING")
        begun = time.perf_counter()
        for _ in range(commits):
            conn.execute("UPDATE node SET status = 'y' WHERE id = -1")
        return (time.perf_counter() - begun) * 1000 / commits
