"""The checks of `geomill doctor`. Each returns one finding or several."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self

import psycopg

from geomill import embedded
from geomill.catalogue import pending
from geomill.cli import folder
from geomill.domain.objectname import Zone
from geomill.domain.tables import EXTERNAL_TABLES
from geomill.errors import GeomillError, InputError
from geomill.sdk.registry import load_handlers
from geomill.settings import Settings
from geomill.storage import Storage, StorageRecipe
from geomill.storage.space import existing, readable, spaces
from geomill.store import attendance, jobs, keys, metrics, pgstac
from geomill.store.connection import connect
from geomill.store.fitness import Fitness, check_fitness
from geomill.store.pool import Connection, open_pool
from geomill.store.presence import lacking
from geomill.workflows.registry import WorkflowRegistry

OLDEST_PYTHON = (3, 11)
TOO_LITTLE_SPACE = 500_000_000
SKEW_SECONDS, TOO_MUCH_SKEW_SECONDS = 2.0, 30.0
QUIET_SECONDS = 900.0


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    level: Level
    subject: str
    message: str
    remedy: str = ""

    @classmethod
    def of(cls, subject: str, error: GeomillError) -> Self:
        problems = [str(problem) for problem in error.problems] if isinstance(error, InputError) else []
        return cls(Level.FAIL, subject, "; ".join([error.message, *problems]), error.remedy)


def examine_machine(settings: Settings) -> Iterator[Diagnosis]:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield Diagnosis(Level.OK, "Python", version)
    else:
        yield Diagnosis(Level.FAIL, "Python", f"{version} is too old", "install Python 3.11 or newer")
    if settings.database.database_url is None:
        yield _programs()
    yield _folder(settings.database.data, settings.storage.space_warning_mb * 1_000_000)


def _programs() -> Diagnosis:
    try:
        programs = embedded.find()
    except GeomillError as error:
        return Diagnosis.of("PostgreSQL programs", error)
    return Diagnosis(Level.OK, "PostgreSQL programs", f"version {programs.major} with PostGIS in {programs.folder}")


def _folder(data: Path, warning_bytes: int) -> Diagnosis:
    nearest_folder = existing(data)
    if not nearest_folder.is_dir() or not os.access(nearest_folder, os.W_OK | os.X_OK):
        remedy = "give yourself write permission, or choose another with --data"
        return Diagnosis(Level.FAIL, "data folder", f"{data} cannot be written", remedy)
    free = shutil.disk_usage(nearest_folder).free
    level = Level.OK if free >= warning_bytes else Level.WARN if free > TOO_LITTLE_SPACE else Level.FAIL
    remedy = "" if level is Level.OK else "free some space, or choose another folder with --data"
    return Diagnosis(level, "data folder", f"{data}, {readable(free)} free", remedy)


def examine_storage(settings: Settings) -> Iterator[Diagnosis]:
    """Check the zones with short timeouts, so that an unreachable store does not delay the other findings."""
    try:
        recipe = StorageRecipe.of(settings.storage, settings.database.data)
    except GeomillError as error:
        yield Diagnosis.of("storage", error)
        return
    storage = Storage(replace(recipe, timeout_seconds=min(recipe.timeout_seconds, 5.0), retry_seconds=0.0))
    for zone in Zone:
        yield _zone(storage, zone)
    yield from _space(recipe, settings.storage.space_warning_mb * 1_000_000)


def _space(recipe: StorageRecipe, warning_bytes: int) -> Iterator[Diagnosis]:
    for space in spaces(recipe):
        if space.place in recipe.zones and space.free_bytes < warning_bytes:
            message = f"the disk is nearly full: {readable(space.free_bytes)} of {readable(space.total_bytes)} are free"
            yield Diagnosis(Level.WARN, space.place, message, "free some space, or move the zone to a larger disk")


def _zone(storage: Storage, zone: Zone) -> Diagnosis:
    if storage.sync.missing_folder(zone):
        return Diagnosis(Level.OK, zone, f"{storage.recipe.zones[zone]} does not exist yet and is created on first use")
    begun = time.monotonic()
    try:
        done = storage.sync.probe(zone)
    except GeomillError as error:  # its message names the zone, but not the place, which partners must not see
        return Diagnosis(Level.FAIL, zone, f"{storage.recipe.zones[zone]}: {error.message}", error.remedy)
    return Diagnosis(Level.OK, zone, f"{done} in {(time.monotonic() - begun) * 1000:.0f} ms")


def examine_workflows(settings: Settings) -> Iterator[Diagnosis]:
    try:
        registry = load_handlers(settings.workflow.handlers)
    except GeomillError as error:
        yield Diagnosis.of("handlers", error)
        return
    yield Diagnosis(Level.OK, "handlers", f"{len(registry)} handlers load")
    try:
        workflows = WorkflowRegistry.load(
            settings.workflow.workflows, handlers=registry.info, queues=settings.queue.task_queues
        )
    except GeomillError as error:
        yield Diagnosis.of("workflows", error)
    else:
        yield Diagnosis(Level.OK, "workflows", f"{len(workflows)} workflows are valid")


async def examine_database(url: str, data: Path) -> list[Diagnosis]:
    async with await connect(url) as first:  # fails at once if there is no server
        fitness, catalogue, steps = await check_fitness(first), await pgstac.installed(first), await lacking(first)
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        findings = [_server(fitness, catalogue), await _clock(conn), _schema(steps)]
        if not steps:
            try:
                findings += [await _admin_key(conn, data), *await _platform(conn)]
            except psycopg.errors.InsufficientPrivilege as error:
                findings.append(_unread("platform", error))
        return findings


async def examine_external(url: str | None) -> Diagnosis:
    subject = "external database"
    if url is None:
        return Diagnosis(Level.OK, subject, "none is set: exports copy files, but no tables and no catalogue")
    try:
        async with await connect(url) as conn:
            steps, catalogue = await lacking(conn, EXTERNAL_TABLES), await pgstac.installed(conn)
    except GeomillError as error:
        return Diagnosis.of(subject, error)
    except psycopg.errors.InsufficientPrivilege as error:  # as a gateway, which only hides entries
        return _unread(subject, error)
    if steps:
        return Diagnosis(Level.FAIL, subject, f"the schema is incomplete: {steps[0]}", "run 'geomill db migrate'")
    return Diagnosis(Level.OK, subject, f"up to date, pgstac {catalogue}")


def _unread(subject: str, error: psycopg.errors.InsufficientPrivilege) -> Diagnosis:
    message = f"this role may not read all tables: {error.diag.message_primary}"
    return Diagnosis(Level.WARN, subject, message, "run 'geomill doctor' as the owner of the database")


def _server(fitness: Fitness, catalogue: str | None) -> Diagnosis:
    versions = f"PostGIS {fitness.postgis_installed or 'not yet installed'}, pgstac {catalogue or 'not yet installed'}"
    return Diagnosis(Level.OK, "database", f"PostgreSQL {fitness.server_version}, {versions}")


def _schema(steps: list[str]) -> Diagnosis:
    if steps:
        more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
        remedy = "run 'geomill db status' to see the changes, and 'geomill db migrate' to make them"
        return Diagnosis(Level.FAIL, "schema", f"the schema is incomplete: {steps[0]}{more}", remedy)
    return Diagnosis(Level.OK, "schema", "up to date")


async def _clock(conn: Connection) -> Diagnosis:
    before = datetime.now(UTC)
    server_time = await metrics.clock(conn)
    after = datetime.now(UTC)
    skew = (server_time - before - (after - before) / 2).total_seconds()
    level = Level.OK if abs(skew) < SKEW_SECONDS else Level.WARN if abs(skew) < TOO_MUCH_SKEW_SECONDS else Level.FAIL
    remedy = "" if level is Level.OK else "synchronise the clocks of both machines with NTP"
    return Diagnosis(level, "clock", f"differs from the database's clock by {abs(skew):.1f} s", remedy)


async def _admin_key(conn: Connection, data: Path) -> Diagnosis:
    subject, file, secret = "administrator's key", data / folder.KEY_FILE, folder.read_key(data)
    if not file.exists():
        return Diagnosis(Level.OK, subject, f"there is none in {data} yet; 'geomill up' creates it")
    stored = await keys.find(conn, secret.key_id) if secret else None
    if secret is None or stored is None or not stored.key.fits(secret):
        return Diagnosis(
            Level.WARN, subject, f"{file} holds no key of this database", "run 'geomill up' to create a new key"
        )
    if not stored.valid:
        return Diagnosis(
            Level.WARN, subject, f"the key in {file} has expired or was revoked", "run 'geomill up' to create a new key"
        )
    if file.stat().st_mode & 0o077:
        remedy = f"run 'geomill keys revoke {stored.key.key_id}', then 'geomill up' to create a new key"
        return Diagnosis(Level.WARN, subject, f"other users of this machine can read {file}", remedy)
    return Diagnosis(Level.OK, subject, f"the key in {file} is valid")


async def _platform(conn: Connection) -> list[Diagnosis]:
    processes = await metrics.instances(conn)
    return [
        await _size(conn),
        *(_role(processes, role) for role in ("orchestrator", "worker")),
        *_duties(processes),
        *(await _attendance(conn, processes)),
        await _catalogue(conn),
        await _dead_letters(conn),
        await _stuck(conn),
        await _parked(conn),
        await _horizon(conn),
    ]


async def _size(conn: Connection) -> Diagnosis:
    try:
        size = await metrics.database_bytes(conn)
    except psycopg.errors.QueryCanceled:
        return Diagnosis(
            Level.WARN, "database size", "the server took too long to compute it", "check the load of the server"
        )
    return Diagnosis(Level.OK, "database size", readable(size))


def _role(processes: list[metrics.InstanceHealth], role: str) -> Diagnosis:
    alive = sum(process.alive for process in processes if process.role == role)
    if alive:
        return Diagnosis(Level.OK, f"{role}s", f"{alive} running")
    return Diagnosis(Level.WARN, f"{role}s", "none is running, so jobs wait", f"run 'geomill up' or 'geomill {role}'")


def _duties(processes: list[metrics.InstanceHealth]) -> Iterator[Diagnosis]:
    for process in processes:
        for duty, state in process.duties.items():
            if state.get("failing") and process.alive:
                message = f"'{duty}' of {process.instance_id} on {process.hostname} fails: {state.get('error')}"
                yield Diagnosis(Level.WARN, "duties", message, "read the log of that process")


async def _attendance(conn: Connection, processes: list[metrics.InstanceHealth]) -> list[Diagnosis]:
    """Report queues that no worker serves, as the orchestrators last recorded them.

    Without a running orchestrator the record is out of date, and another finding says so.
    """
    unserved = await attendance.unserved(conn)
    if not unserved and not any(process.alive and process.role == "orchestrator" for process in processes):
        return []
    if not unserved:
        return [Diagnosis(Level.OK, "queues", "every queue with waiting messages is served")]
    return [
        Diagnosis(Level.WARN, "queues", f"{queue.reason}, since {queue.since:%Y-%m-%d %H:%M}", queue.remedy)
        for queue in unserved
    ]


async def _catalogue(conn: Connection) -> Diagnosis:
    backlog = await pending.overdue(conn)
    if not backlog.count:
        return Diagnosis(Level.OK, "catalogue", "up to date")
    message = f"{backlog.count} entries wait since {backlog.since:%Y-%m-%d %H:%M}: {backlog.reason}"
    return Diagnosis(Level.WARN, "catalogue", message, "read the table catalogue.pending; an orchestrator tries again")


async def _dead_letters(conn: Connection) -> Diagnosis:
    groups = await metrics.dead_letters(conn)
    if not groups:
        return Diagnosis(Level.OK, "dead letters", "none")
    message = ", ".join(f"{group.letters} on {group.queue_name} ({group.reason})" for group in groups)
    return Diagnosis(Level.WARN, "dead letters", message, "run 'geomill queues dead-letters' to see the reasons")


async def _stuck(conn: Connection) -> Diagnosis:
    stuck_jobs = await metrics.stuck_jobs(conn, QUIET_SECONDS, limit=5)
    if not stuck_jobs:
        return Diagnosis(Level.OK, "stuck jobs", "none")
    message = ", ".join(
        f"{job.job_id} ({job.workflow_id}, quiet for {job.quiet_seconds / 60:.0f} min)" for job in stuck_jobs
    )
    return Diagnosis(
        Level.WARN, "stuck jobs", message, "run 'geomill jobs show JOB --events', then cancel or retry the job"
    )


async def _parked(conn: Connection) -> Diagnosis:
    parked_jobs = await jobs.parked(conn, limit=5)
    if not parked_jobs:
        return Diagnosis(Level.OK, "parked jobs", "none")
    message = "; ".join(f"{job.job_id} ({job.workflow_id}): {job.parked_reason}" for job in parked_jobs)
    return Diagnosis(Level.WARN, "parked jobs", message, "fix the cause, then run 'geomill jobs release JOB'")


async def _horizon(conn: Connection) -> Diagnosis:
    subject, holders = "open transactions", await metrics.horizon(conn)
    if old := [holder for holder in holders if holder.old]:
        remedy = "end it with pg_terminate_backend, ROLLBACK PREPARED or pg_drop_replication_slot"
        return Diagnosis(Level.WARN, subject, "; ".join(holder.told() for holder in old), remedy)
    oldest = max((holder.seconds or 0.0 for holder in holders), default=0.0)
    return Diagnosis(
        Level.OK, subject, f"the oldest has been open for {oldest:.0f} s" if holders else "none but the doctor's own"
    )
