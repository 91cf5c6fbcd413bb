"""A few submissions are claimed by one statement. Whatever gets in between, a submission becomes one job or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from geomill.engine.claim import FEW, Claimer
from geomill.engine.owned import Graphs
from geomill.store.pool import Connection
from tests.integration.engine.conftest import MakePlatform
from tests.integration.engine.platform import EnginePlatform

ONE = """
workflow_id: one
name: One task
nodes:
  START: {type: start, next: work}
  work: {type: task, handler: echo, next: END}
  END: {type: end}
"""


@dataclass
class Interrupted(Claimer):
    """Something happens in the database between the look at a submission and the write."""

    meanwhile: list[tuple[Connection, str]] = field(default_factory=list)

    async def _admit(self, conn: Connection, received: Any) -> Any:
        while self.meanwhile:
            other, statement = self.meanwhile.pop()
            await other.execute(statement.encode())
        return await super()._admit(conn, received)


def claimer(platform: EnginePlatform, *meanwhile: tuple[Connection, str]) -> Interrupted:
    return Interrupted("me", "dag-jobs", platform.workflow_registry, Graphs(), meanwhile=list(meanwhile))


async def written(platform: EnginePlatform) -> dict[str, int]:
    tables = ("dag_jobs", "dag_node_states", "dag_queue", "dag_job_events")
    (row,) = await platform.rows("SELECT " + ", ".join(f"(SELECT count(*) FROM dagapp.{t}) AS {t}" for t in tables))
    return row


async def test_a_submission_becomes_a_job_with_its_first_task(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    job_id = await platform.submit("one")
    async with platform.pool.connection() as conn:
        claimed = await claimer(platform).claim(conn, 25)
        again = await claimer(platform).claim(conn, 25)
    assert ([job.job_id for job in claimed.jobs], claimed.messages, again.messages) == ([job_id], 1, 0)
    (message,) = await platform.rows("SELECT queue_name, message_id FROM dagapp.dag_queue")
    assert (message["queue_name"], message["message_id"].split(":")[0]) == ("functionapp-tasks", job_id)
    assert await platform.statuses(job_id) == {"START": "completed", "work": "dispatched", "END": "pending"}


async def test_one_that_somebody_else_is_taking_is_left_alone(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    await platform.submit("one")
    before = await written(platform)
    async with platform.pool.connection() as other, platform.pool.connection() as conn:
        async with other.transaction(force_rollback=True):
            lock = (other, "SELECT FROM dagapp.dag_queue FOR UPDATE")
            assert (await claimer(platform, lock).claim(conn, 25)).messages == 0
            assert await written(platform) == before
        assert (await claimer(platform).claim(conn, 25)).messages == 1


async def test_one_that_is_gone_by_then_leaves_nothing(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    await platform.submit("one")
    async with platform.pool.connection() as other, platform.pool.connection() as conn:
        gone = (other, "DELETE FROM dagapp.dag_queue")
        assert (await claimer(platform, gone).claim(conn, 25)).messages == 0
    assert set((await written(platform)).values()) == {0}


async def test_a_second_message_for_a_job_is_swallowed(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    job_id = await platform.submit("one")
    async with platform.pool.connection() as conn:
        await claimer(platform).claim(conn, 25)
        before = await written(platform)
        await platform.submit("one", job_id=job_id)
        claimed = await claimer(platform).claim(conn, 25)
    assert (claimed.jobs, claimed.messages) == ([], 1)
    assert await written(platform) == before


async def test_one_that_is_refused_does_not_keep_the_others(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    good, bad = await platform.submit("one"), await platform.submit("one")
    async with platform.pool.connection() as conn:
        await conn.execute(
            'UPDATE dagapp.dag_queue SET body = body || \'{"workflow_id": "not a name"}\' WHERE message_id = %s', [bad]
        )
        claimed = await claimer(platform).claim(conn, 25)
    assert ([job.job_id for job in claimed.jobs], claimed.messages) == ([good], 2)
    (letter,) = await platform.rows("SELECT message_id, reason FROM dagapp.dag_dead_letters")
    assert letter == {"message_id": bad, "reason": "WorkflowNotFound"}


async def test_many_are_taken_in_one_transaction(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    submitted = {await platform.submit("one") for _ in range(FEW + 2)}
    async with platform.pool.connection() as conn:
        claimed = await claimer(platform).claim(conn, 25)
    assert ({job.job_id for job in claimed.jobs}, claimed.messages) == (submitted, FEW + 2)
