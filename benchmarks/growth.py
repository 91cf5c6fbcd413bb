"""Fan-outs, chains and workflows with millions of finished tasks in the tables, beside a database that has none.

`BENCH_GROWTH` names the millions of tasks, in rising order. A finished fan-out is copied under new job ids until there
are as many. Both databases take turns, and each cost is a median of ratios. The first turns come right after the load,
the others each after one more thing that the server would do by itself: a checkpoint, statistics, a vacuum. So they
show which of them makes a difference. Autovacuum is off for these tables meanwhile.
"""

from __future__ import annotations

import asyncio
import os

import psycopg
from psycopg import sql

from benchmarks.engine import Turns
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, connected, roles
from benchmarks.server import database

MILLIONS = [float(size) for size in os.environ.get("BENCH_GROWTH", "1 3 10").split()]
REPEATS = int(os.environ.get("BENCH_GROWTH_TURNS", "5"))
ITEMS = 10_000
COPIES_AT_ONCE = 20
TABLES = ("dag_jobs", "dag_node_states", "dag_task_results", "dag_job_events")
"""A finished job leaves rows in these. `dag_jobs` comes first, because others refer to it."""
CARE = {"after a checkpoint": "CHECKPOINT", "analyzed": "ANALYZE", "vacuumed": "VACUUM"}
"""The steps after the tables are loaded, in their order."""
WORK = {
    "chain": ("chain of 50, per step", "ms"),
    "fan": (f"fan-out of {ITEMS:,}", "tasks/s"),
    "workflows": ("200 workflows of 5 steps", "jobs/s"),
}


def run() -> list[Figure]:
    with database() as base_url, database() as url, roles(base_url) as base_roles, roles(url) as grown_roles:

        async def main() -> list[Figure]:
            async with connected(base_roles) as base, connected(grown_roles) as grown:
                return await _grow(base, grown, url)

        return asyncio.run(main())


async def _grow(base: BenchmarkClient, grown: BenchmarkClient, url: str) -> list[Figure]:
    await asyncio.to_thread(_stop_autovacuum, url)
    template = (await grown.submit("fan", {"items": list(range(ITEMS))}))[0]
    await grown.ended([template])
    figures = await _compare(base, grown, "nothing")
    finished = 0.0
    for millions in MILLIONS:
        await asyncio.to_thread(_copy, url, template, round((millions - finished) * 1_000_000 / ITEMS))
        finished = millions
        figures.append(_size(url, millions))
        figures += await _compare(base, grown, f"{millions:g} million, just loaded")
        for what, statement in CARE.items():
            await asyncio.to_thread(_execute, url, statement)
            figures += await _compare(base, grown, f"{millions:g} million, {what}")
    return figures


def _copy(url: str, template: str, copies: int) -> None:
    """Add as many copies of a finished job, with all of its rows."""
    with psycopg.connect(url, autocommit=True) as conn:
        for begun in range(0, copies, COPIES_AT_ONCE):
            count = min(COPIES_AT_ONCE, copies - begun)
            ids = [
                row[0] for row in conn.execute("SELECT gen_random_uuid()::text FROM generate_series(1, %s)", [count])
            ]
            with conn.transaction():
                for table in TABLES:
                    conn.execute(_copying(conn, table), {"template": template, "ids": ids})


def _copying(conn: psycopg.Connection, table: str) -> sql.Composed:
    """Return the statement that copies the rows of a job: its id is replaced, in the ids of its tasks, too."""
    query = """SELECT column_name FROM information_schema.columns
               WHERE table_schema = 'dagapp' AND table_name = %s AND is_identity = 'NO' ORDER BY ordinal_position"""
    names = [row[0] for row in conn.execute(query, [table])]
    replaced = {
        "job_id": sql.SQL("copy.job_id"),
        "task_id": sql.SQL("replace(t.task_id, %(template)s, copy.job_id)"),
    }
    return sql.SQL(
        "INSERT INTO {table} ({names}) SELECT {values} FROM unnest(%(ids)s::text[]) AS copy(job_id), {table} AS t"
        " WHERE t.job_id = %(template)s"
    ).format(
        table=sql.Identifier("dagapp", table),
        names=sql.SQL(", ").join(map(sql.Identifier, names)),
        values=sql.SQL(", ").join(replaced.get(name, sql.Identifier("t", name)) for name in names),
    )


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement.encode())


def _stop_autovacuum(url: str) -> None:
    for table in TABLES:
        _execute(url, f"ALTER TABLE dagapp.{table} SET (autovacuum_enabled = off)")


def _size(url: str, millions: float) -> Figure:
    query = "SELECT sum(pg_total_relation_size(format('dagapp.%%I', t)::regclass)) FROM unnest(%s::text[]) AS t"
    with psycopg.connect(url) as conn:
        row = conn.execute(query, [list(TABLES)]).fetchone()
    assert row is not None
    return Figure(f"{millions:g} million finished tasks", float(row[0]) / millions / 1e6 / 1000, "kB per task")


async def _compare(base: BenchmarkClient, grown: BenchmarkClient, behind: str) -> list[Figure]:
    turns = Turns()
    for _ in range(REPEATS):
        turns.note(**{f"base {name}": figure for name, figure in (await _work(base)).items()})
        turns.note(**await _work(grown))
    return [_figure(turns, name, behind) for name in WORK]


async def _work(client: BenchmarkClient) -> dict[str, float]:
    return {
        "chain": 1000 * await client.run("chain50") / 50,
        "fan": ITEMS / await client.run("fan", {"items": list(range(ITEMS))}),
        "workflows": 200 / await client.run("chain5", count=200),
    }


def _figure(turns: Turns, name: str, behind: str) -> Figure:
    """Return a figure and its cost beside the base; a negative cost is a gain."""
    what, unit = WORK[name]
    ratio = turns.ratio(name, f"base {name}")
    cost = ratio - 1 if unit == "ms" else 1 / ratio - 1
    return Figure(
        f"{behind}: {what}", turns.of(name), unit, f"costs {cost:+.0%} beside {turns.of(f'base {name}'):,.1f}"
    )
