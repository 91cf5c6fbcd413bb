"""Takes over what dead processes left: leases of workers go back to their queues, jobs of orchestrators come here.

A process is dead when the lock that its session held is free. A bounded batch per look keeps one orchestrator from
taking everything. What it does badly: a process behind a pooler that keeps sessions open looks alive for too long.
"""

from __future__ import annotations

from geomill.domain.instance import InstanceRole
from geomill.domain.job import Job
from geomill.queues import postgres as queue
from geomill.store import inbox, instances, jobs
from geomill.store.pool import Connection
from geomill.store.signals import notify, queue_channel


async def reclaim(conn: Connection, owner_id: str, limit: int) -> list[Job]:
    """The jobs that are ours from now on."""
    dead = [instance for instance in await instances.dead(conn) if instance.instance_id != owner_id]
    names = [instance.instance_id for instance in dead]
    async with conn.transaction():
        freed = await queue.release(conn, names)
        taken = await jobs.reclaim(conn, owner_id, names, limit)
        if taken:
            await inbox.readdress(conn, owner_id, [job.job_id for job in taken])
        await inbox.readdress_strays(conn, owner_id)
        workers = [instance.instance_id for instance in dead if instance.role is InstanceRole.WORKER]
        orchestrators = [name for name in names if name not in workers]
        await instances.forget(conn, workers if len(taken) == limit else workers + orchestrators)
    await notify(conn, map(queue_channel, freed))
    return taken
