"""Schedules that fire, on a real database, with as many orchestrators as one likes."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from geomill.cli.schedules import app
from geomill.domain.engine.schedule import CatchUp, Schedule
from geomill.engine.maintenance import schedules as duty
from geomill.engine.maintenance.schedules import Fired, Scheduler, create, set_paused
from geomill.errors import ConflictError, InputError, InputsError, NotFoundError
from geomill.store.pool import Pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.maintenance.conftest import JobDatabase

QUEUE = "dag-jobs"


@pytest.fixture
def scheduler(workflow_registry: WorkflowRegistry) -> Scheduler:
    return Scheduler(workflow_registry, QUEUE)


async def create_schedule(db: JobDatabase, *, overdue: float = 0, **fields: Any) -> Schedule:
    """A schedule whose first due time lies `overdue` seconds back."""
    timing = {} if "cron" in fields else {"interval_seconds": 60}
    values = {"schedule_id": "s", "workflow_id": "hello_world", "input_params": {}, **timing, **fields}
    async with db.pool.connection() as conn:
        schedule = await create(conn, **values)
    if overdue:
        query = """
            UPDATE dagapp.dag_schedules
            SET created_at = now() - make_interval(secs => %(age)s + interval_seconds),
                next_due_at = now() - make_interval(secs => %(age)s)
            WHERE schedule_id = %(schedule_id)s"""
        await db.rows(query, age=overdue, schedule_id=schedule.schedule_id)
    return await load_schedule(db, schedule.schedule_id)


async def load_schedule(db: JobDatabase, schedule_id: str = "s") -> Schedule:
    rows = await db.rows("SELECT * FROM dagapp.dag_schedules WHERE schedule_id = %(id)s", id=schedule_id)
    return Schedule.from_row(rows[0])


async def queued(db: JobDatabase) -> list[dict[str, Any]]:
    return [row["body"] for row in await db.rows("SELECT body FROM dagapp.dag_queue ORDER BY sequence")]


async def look(db: JobDatabase, scheduler: Scheduler) -> Fired:
    async with db.pool.connection() as conn:
        return await scheduler.run_once(conn)


async def test_nothing_is_due(db: JobDatabase, scheduler: Scheduler) -> None:
    schedule = await create_schedule(db)
    assert schedule.next_due_at == schedule.created_at + timedelta(seconds=60)
    assert await look(db, scheduler) == Fired()


async def test_a_due_schedule_fires_and_is_due_again(db: JobDatabase, scheduler: Scheduler) -> None:
    before = await create_schedule(db, overdue=1, input_params={"name": "Ada"})
    assert before.next_due_at is not None
    fired = await look(db, scheduler)
    (body,) = await queued(db)
    assert fired.jobs == [body["job_id"]]
    assert (body["workflow_id"], body["input_params"]) == ("hello_world", {"name": "Ada"})
    assert (body["correlation_id"], body["submitted_by"]) == ("s", "schedule")
    after = await load_schedule(db)
    assert after.next_due_at == before.next_due_at + timedelta(seconds=60)
    assert after.last_fired_at is not None
    assert after.open_jobs == fired.jobs
    assert await look(db, scheduler) == Fired()


async def test_four_at_once_fire_once_per_due_time(db: JobDatabase, scheduler: Scheduler) -> None:
    for number in range(20):
        await create_schedule(db, overdue=125, schedule_id=f"s{number}", catch_up=CatchUp.ALL, max_concurrent=10)

    async def often() -> list[str]:
        return [job_id for _ in range(5) for job_id in (await look(db, scheduler)).jobs]

    fired = [job_id for jobs in await asyncio.gather(*(often() for _ in range(4))) for job_id in jobs]
    assert len(fired) == len(set(fired)) == 20 * 3
    assert sorted(fired) == sorted(body["job_id"] for body in await queued(db))


async def test_a_schedule_that_somebody_deals_with_is_passed_by(db: JobDatabase, scheduler: Scheduler) -> None:
    await create_schedule(db, overdue=1)
    async with db.pool.connection() as holder, holder.transaction():
        await holder.execute("SELECT FROM dagapp.dag_schedules FOR UPDATE")
        async with asyncio.timeout(5):
            assert await look(db, scheduler) == Fired()
    assert len((await look(db, scheduler)).jobs) == 1


async def test_a_crash_in_between_loses_nothing_and_fires_nothing_twice(
    db: JobDatabase, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await create_schedule(db, overdue=1)

    async def crash(*_: Any) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(duty.schedules, "advance", crash)
        with pytest.raises(RuntimeError):
            await look(db, scheduler)
    assert await queued(db) == []
    assert await load_schedule(db) == before
    assert len((await look(db, scheduler)).jobs) == 1
    assert len(await queued(db)) == 1


async def test_a_due_time_set_back_by_hand_gives_the_same_job(db: JobDatabase, scheduler: Scheduler) -> None:
    await create_schedule(db, overdue=1, max_concurrent=5)
    first = await look(db, scheduler)
    await db.rows("UPDATE dagapp.dag_schedules SET next_due_at = next_due_at - interval '60 s'")
    assert (await look(db, scheduler)).jobs == first.jobs
    assert len(await queued(db)) == 1


@pytest.mark.parametrize(("policy", "expected"), [(CatchUp.SKIP, 0), (CatchUp.LAST, 1), (CatchUp.ALL, 5)])
async def test_catching_up(db: JobDatabase, scheduler: Scheduler, policy: CatchUp, expected: int) -> None:
    await create_schedule(db, overdue=4 * 3600 + 600, interval_seconds=3600, catch_up=policy, max_concurrent=9)
    assert len((await look(db, scheduler)).jobs) == expected
    after = await load_schedule(db)
    assert after.next_due_at is not None
    assert after.next_due_at > after.updated_at


async def test_catching_up_a_few_at_a_time(db: JobDatabase, workflow_registry: WorkflowRegistry) -> None:
    await create_schedule(db, overdue=301, catch_up=CatchUp.ALL, max_concurrent=99)
    scheduler = Scheduler(workflow_registry, QUEUE, catch_up_limit=2)
    assert [len((await look(db, scheduler)).jobs) for _ in range(4)] == [2, 2, 2, 0]


async def _end(db: JobDatabase, job_id: str) -> None:
    await db.rows("DELETE FROM dagapp.dag_queue WHERE message_id = %(id)s", id=job_id)


async def test_no_more_jobs_at_once_than_allowed(db: JobDatabase, scheduler: Scheduler) -> None:
    await create_schedule(db, overdue=301, catch_up=CatchUp.ALL, max_concurrent=2)
    first = await look(db, scheduler)
    assert (len(first.jobs), first.blocked) == (2, ["s"])
    assert await look(db, scheduler) == Fired(), "it is held for a moment"
    await db.rows("UPDATE dagapp.dag_schedules SET held_until = now()")
    assert (await look(db, scheduler)).jobs == []
    await _end(db, first.jobs[0])
    await db.rows("UPDATE dagapp.dag_schedules SET held_until = now()")
    second = await look(db, scheduler)
    assert len(second.jobs) == 1
    assert (await load_schedule(db)).open_jobs == [first.jobs[1], *second.jobs]


async def test_a_job_that_runs_counts_too(db: JobDatabase, scheduler: Scheduler) -> None:
    await create_schedule(db, overdue=61)
    running = await db.ended_job(None)
    await db.rows("INSERT INTO dagapp.dag_definitions VALUES ('h', 'hello_world', 1, '{}')")
    await db.rows("UPDATE dagapp.dag_jobs SET status = 'running', completed_at = NULL, definition_hash = 'h'")
    await db.rows("UPDATE dagapp.dag_schedules SET open_jobs = jsonb_build_array(%(id)s::text)", id=running.job_id)
    assert (await look(db, scheduler)).blocked == ["s"]
    await db.rows("UPDATE dagapp.dag_jobs SET status = 'completed', completed_at = now()")
    await db.rows("UPDATE dagapp.dag_schedules SET held_until = now()")
    assert len((await look(db, scheduler)).jobs) == 1


async def test_what_cannot_fire_says_why_and_stops_nobody(db: JobDatabase, scheduler: Scheduler) -> None:
    await create_schedule(db, overdue=50, schedule_id="gone", workflow_id="hello_wurld")
    await create_schedule(db, overdue=40, schedule_id="wrong", input_params={"nam": "Ada"})
    await create_schedule(db, overdue=30, schedule_id="zone")
    await db.rows(
        "UPDATE dagapp.dag_schedules SET cron = '* * * * *', interval_seconds = NULL, timezone = 'Mars' "
        "WHERE schedule_id = 'zone'"
    )
    good = await create_schedule(db, overdue=1, schedule_id="good")
    one_by_one = Scheduler(scheduler.workflow_registry, QUEUE, batch=1)
    looks = [await look(db, one_by_one) for _ in range(5)]
    assert {name for fired in looks for name in fired.refused} == {"gone", "wrong", "zone"}
    assert sum(len(fired.jobs) for fired in looks) == 1
    gone = await load_schedule(db, "gone")
    assert gone.last_error == "there is no workflow 'hello_wurld'; did you mean 'hello_world'?"
    assert "there is no input 'nam'" in str((await load_schedule(db, "wrong")).last_error)
    assert "there is no time zone 'Mars'" in str((await load_schedule(db, "zone")).last_error)
    assert (await load_schedule(db, good.schedule_id)).last_error is None
    await db.rows("UPDATE dagapp.dag_schedules SET workflow_id = 'hello_world', held_until = now() "
                  "WHERE schedule_id = 'gone'")  # fmt: skip
    assert len((await look(db, scheduler)).jobs) == 1
    assert (await load_schedule(db, "gone")).last_error is None


async def test_pause_and_resume(db: JobDatabase, scheduler: Scheduler) -> None:
    await create_schedule(db, overdue=3600, catch_up=CatchUp.ALL)
    async with db.pool.connection() as conn:
        assert (await set_paused(conn, "s", paused=True)).paused
        assert await scheduler.run_once(conn) == Fired()
        resumed = await set_paused(conn, "s", paused=False)
        assert resumed.next_due_at is not None
        assert timedelta() < resumed.next_due_at - resumed.updated_at <= timedelta(seconds=60)
        assert await scheduler.run_once(conn) == Fired()


async def test_fire_by_hand(db: JobDatabase, scheduler: Scheduler) -> None:
    before = await create_schedule(db)
    async with db.pool.connection() as conn:
        job_id = (await scheduler.fire(conn, "s")).job_id
        with pytest.raises(ConflictError, match="1 of at most 1 jobs of 's' are under way"):
            await scheduler.fire(conn, "s")
        with pytest.raises(NotFoundError, match="there is no schedule 'x'"):
            await scheduler.fire(conn, "x")
    assert [body["job_id"] for body in await queued(db)] == [job_id]
    assert (await load_schedule(db)).next_due_at == before.next_due_at


async def test_the_due_query_uses_its_index(pool: Pool) -> None:
    async with pool.connection() as conn, conn.transaction():
        await conn.execute(
            "INSERT INTO dagapp.dag_schedules (schedule_id, workflow_id, interval_seconds, next_due_at) "
            "SELECT n::text, 'w', 1, now() + n * interval '1 minute' FROM generate_series(1, 5000) AS n"
        )
        await conn.execute("ANALYZE dagapp.dag_schedules")
        query = f"EXPLAIN {duty.schedules.queries('schedules').due}"
        plan = await (await conn.execute(query, {"limit": 50})).fetchall()
    assert any("idx_dag_schedules_due" in row["QUERY PLAN"] for row in plan)


# Commands


@pytest.fixture
def run(database: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("GEOMILL_DATABASE_URL", database)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments))

    return command


def test_the_life_of_a_schedule(run: Any) -> None:
    created = run(
        "create", "nightly", "hello_world", "--cron", "30 2 * * *", "--timezone", "Europe/Zurich", "-i", "name=Ada",
        "--catch-up", "all", "--max-concurrent", "2", "--json",
    )  # fmt: skip
    shown = json.loads(created.output)
    assert (shown["cron"], shown["timezone"], shown["catch_up"]) == ("30 2 * * *", "Europe/Zurich", "all")
    assert shown["input_params"] == {"name": "Ada"}
    assert datetime.fromisoformat(shown["next_due_at"]) > datetime.fromisoformat(shown["created_at"])
    assert "30 2 * * * (Europe/Zurich)" in run("list").output
    assert run("pause", "nightly").output == "nightly: paused\n"
    assert json.loads(run("list", "--json").output)[0]["paused"] is True
    assert run("resume", "nightly").output.startswith("nightly: next ")
    assert json.loads(run("fire", "nightly", "--json").output)["status"] == "queued"
    assert run("delete", "nightly").output == "deleted nightly\n"
    assert run("list").output.startswith("There are no schedules")


def test_what_cannot_be_a_schedule(run: Any) -> None:
    assert run("create", "s", "hello_world", "--every", "60").exit_code == 0
    for arguments, error, message in [
        (("s", "hello_world", "--every", "60"), ConflictError, "already a schedule"),
        (("t", "hello_word", "--every", "60"), NotFoundError, "did you mean 'hello_world'"),
        (("t", "hello_world", "--every", "60", "-i", "nam=x"), InputsError, "has no input 'nam'"),
        (("t", "hello_world"), InputError, "exactly one"),
        (("t", "hello_world", "--cron", "* * *"), InputError, "3 fields"),
        (("t", "hello_world", "--cron", "* * * * *", "--timezone", "Mars"), InputError, "no time zone"),
        (("t" * 70, "hello_world", "--every", "60"), InputError, "schedule_id: "),
    ]:
        raised = run("create", *arguments).exception
        assert isinstance(raised, error), raised
        assert message in str(raised)
    assert isinstance(run("delete", "x").exception, NotFoundError)
