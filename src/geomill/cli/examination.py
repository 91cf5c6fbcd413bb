"""What `geomill doctor` looks at, one finding for each."""

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
from geomill.cli import folder
from geomill.domain.objectname import Zone
from geomill.domain.tables import EXTERNAL_TABLES
from geomill.errors import GeomillError, InputError
from geomill.sdk.registry import load_handlers
from geomill.settings import Settings
from geomill.storage import Storage, StorageRecipe
from geomill.storage.space import existing, readable, spaces
from geomill.store import attendance, jobs, keys, metrics, pending, pgstac
from geomill.store.connection import connect
from geomill.store.fitness import Fitness, check_fitness
from geomill.store.pool import Connection, open_pool
from geomill.store.presence import lacking
from geomill.workflows.collection import WorkflowCatalogue

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
        found = embedded.find()
    except GeomillError as error:
        return Diagnosis.of("PostgreSQL programs", error)
    return Diagnosis(Level.OK, "PostgreSQL programs", f"version {found.major} with PostGIS in {found.folder}")


def _folder(data: Path, little: int) -> Diagnosis:
    there = existing(data)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        remedy = "give yourself write permission, or choose another with --data"
        return Diagnosis(Level.FAIL, "data folder", f"{data} cannot be written", remedy)
    free = shutil.disk_usage(there).free
    level = Level.OK if free >= little else Level.WARN if free > TOO_LITTLE_SPACE else Level.FAIL
    remedy = "" if level is Level.OK else "free some space, or choose another folder with --data"
    return Diagnosis(level, "data folder", f"{data}, {readable(free)} free", remedy)


def examine_storage(settings: Settings) -> Iterator[Diagnosis]:
    """With little patience: who asks for the doctor does not want to wait for one who is away."""
    try:
        recipe = StorageRecipe.of(settings.storage, settings.database.data)
    except GeomillError as error:
        yield Diagnosis.of("storage", error)
        return
    storage = Storage(replace(recipe, timeout_seconds=min(recipe.timeout_seconds, 5.0), retry_seconds=0.0))
    for zone in Zone:
        yield _zone(storage, zone)
    yield from _space(recipe, settings.storage.space_warning_mb * 1_000_000)


def _space(recipe: StorageRecipe, little: int) -> Iterator[Diagnosis]:
    for space in spaces(recipe):
        if space.place in recipe.zones and space.free_bytes < little:
            message = f"its disk is nearly full: {readable(space.free_bytes)} of {readable(space.total_bytes)} are free"
            yield Diagnosis(Level.WARN, space.place, message, "free some space, or move the zone to a larger disk")


def _zone(storage: Storage, zone: Zone) -> Diagnosis:
    if storage.sync.missing_folder(zone):
        return Diagnosis(Level.OK, zone, f"{storage.recipe.zones[zone]}, not yet there: made when it is first used")
    begun = time.monotonic()
    try:
        done = storage.sync.probe(zone)
    except GeomillError as error:  # it names the zone and not the place, which partners may not read
        return Diagnosis(Level.FAIL, zone, f"{storage.recipe.zones[zone]}: {error.message}", error.remedy)
    return Diagnosis(Level.OK, zone, f"{done} in {(time.monotonic() - begun) * 1000:.0f} ms")


def examine_workflows(settings: Settings) -> Iterator[Diagnosis]:
    try:
        registry = load_handlers(settings.workflow.handlers)
    except GeomillError as error:
        yield Diagnosis.of("handlers", error)
        return
    yield Diagnosis(Level.OK, "handlers", f"{len(registry)} load")
    try:
        found = WorkflowCatalogue.load(
            settings.workflow.workflows, handlers=registry.info, queues=settings.queue.task_queues
        )
    except GeomillError as error:
        yield Diagnosis.of("workflows", error)
    else:
        yield Diagnosis(Level.OK, "workflows", f"{len(found)} are valid")


async def examine_database(url: str, data: Path) -> list[Diagnosis]:
    async with await connect(url) as first:  # where there is no server, this says so at once
        fitness, catalogue, steps = await check_fitness(first), await pgstac.installed(first), await lacking(first)
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        findings = [_server(fitness, catalogue), await _clock(conn), _schema(steps)]
        if not steps:
            try:
                findings += [await _admin_key(conn, data), *await _platform(conn)]
            except psycopg.errors.InsufficientPrivilege as error:
                message = f"this role may not look at all of it: {error.diag.message_primary}"
                findings.append(Diagnosis(Level.WARN, "platform", message, "ask as the owner of the database"))
        return findings


async def examine_external(url: str | None) -> Diagnosis:
    subject = "external database"
    if url is None:
        return Diagnosis(Level.OK, subject, "none: of what is exported, only files are outside")
    try:
        async with await connect(url) as conn:
            steps, catalogue = await lacking(conn, EXTERNAL_TABLES), await pgstac.installed(conn)
    except GeomillError as error:
        return Diagnosis.of(subject, error)
    if steps:
        return Diagnosis(Level.FAIL, subject, f"it is not as it should be: {steps[0]}", "run 'geomill db migrate'")
    return Diagnosis(Level.OK, subject, f"up to date, pgstac {catalogue}")


def _server(fitness: Fitness, catalogue: str | None) -> Diagnosis:
    versions = f"PostGIS {fitness.postgis_installed or 'to come'}, pgstac {catalogue or 'to come'}"
    return Diagnosis(Level.OK, "database", f"PostgreSQL {fitness.server_version}, {versions}")


def _schema(steps: list[str]) -> Diagnosis:
    if steps:
        more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
        remedy = "run 'geomill db status' to see all of it, and 'geomill db migrate' to mend it"
        return Diagnosis(Level.FAIL, "schema", f"it is not as it should be: {steps[0]}{more}", remedy)
    return Diagnosis(Level.OK, "schema", "up to date")


async def _clock(conn: Connection) -> Diagnosis:
    before = datetime.now(UTC)
    theirs = await metrics.clock(conn)
    after = datetime.now(UTC)
    skew = (theirs - before - (after - before) / 2).total_seconds()
    level = Level.OK if abs(skew) < SKEW_SECONDS else Level.WARN if abs(skew) < TOO_MUCH_SKEW_SECONDS else Level.FAIL
    remedy = "" if level is Level.OK else "let both machines keep time (NTP)"
    return Diagnosis(level, "clock", f"{abs(skew):.1f} s apart from the database's", remedy)


async def _admin_key(conn: Connection, data: Path) -> Diagnosis:
    subject, file, secret = "administrator's key", data / folder.KEY_FILE, folder.read_key(data)
    if not file.exists():
        return Diagnosis(Level.OK, subject, f"none in {data}: 'geomill up' makes it")
    found = await keys.find(conn, secret.key_id) if secret else None
    if secret is None or found is None or not found.key.fits(secret):
        return Diagnosis(Level.WARN, subject, f"{file} does not fit this database", "run 'geomill up': it mends that")
    if not found.valid:
        return Diagnosis(Level.WARN, subject, f"that in {file} is over", "run 'geomill up': it makes a new one")
    if file.stat().st_mode & 0o077:
        remedy = f"run 'geomill keys revoke {found.key.key_id}', then 'geomill up': it makes a new one"
        return Diagnosis(Level.WARN, subject, f"others can read {file}", remedy)
    return Diagnosis(Level.OK, subject, f"{file} fits")


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
        return Diagnosis(Level.WARN, "database size", "the server took too long to say it", "look at the server's load")
    return Diagnosis(Level.OK, "database size", readable(size))


def _role(processes: list[metrics.InstanceHealth], role: str) -> Diagnosis:
    alive = sum(one.alive for one in processes if one.role == role)
    if alive:
        return Diagnosis(Level.OK, f"{role}s", f"{alive} alive")
    return Diagnosis(Level.WARN, f"{role}s", "none is alive: jobs wait", f"run 'geomill up' or 'geomill {role}'")


def _duties(processes: list[metrics.InstanceHealth]) -> Iterator[Diagnosis]:
    for one in processes:
        for duty, state in one.duties.items():
            if state.get("failing") and one.alive:
                message = f"'{duty}' of {one.instance_id} on {one.hostname} fails: {state.get('error')}"
                yield Diagnosis(Level.WARN, "duties", message, "see the log of that process")


async def _attendance(conn: Connection, processes: list[metrics.InstanceHealth]) -> list[Diagnosis]:
    """As an orchestrator saw it last. That none is alive, another finding says; then nobody knows."""
    unserved = await attendance.unserved(conn)
    if not unserved and not any(process.alive and process.role == "orchestrator" for process in processes):
        return []
    if not unserved:
        return [Diagnosis(Level.OK, "queues", "every queue in which something waits is served")]
    return [
        Diagnosis(Level.WARN, "queues", f"{queue.reason}, since {queue.since:%Y-%m-%d %H:%M}", queue.remedy)
        for queue in unserved
    ]


async def _catalogue(conn: Connection) -> Diagnosis:
    found = await pending.pending(conn)
    if not found.count:
        return Diagnosis(Level.OK, "catalogue", "up to date")
    message = f"{found.count} entries wait since {found.since:%Y-%m-%d %H:%M}: {found.reason}"
    return Diagnosis(Level.WARN, "catalogue", message, "see catalogue.pending; an orchestrator tries again")


async def _dead_letters(conn: Connection) -> Diagnosis:
    found = await metrics.dead_letters(conn)
    if not found:
        return Diagnosis(Level.OK, "dead letters", "none")
    told = ", ".join(f"{one.letters} on {one.queue_name} ({one.reason})" for one in found)
    return Diagnosis(Level.WARN, "dead letters", told, "look at dagapp.dag_dead_letters: each has its reason")


async def _stuck(conn: Connection) -> Diagnosis:
    found = await metrics.stuck_jobs(conn, QUIET_SECONDS, limit=5)
    if not found:
        return Diagnosis(Level.OK, "stuck jobs", "none")
    told = ", ".join(f"{one.job_id} ({one.workflow_id}, quiet for {one.quiet_seconds / 60:.0f} min)" for one in found)
    return Diagnosis(Level.WARN, "stuck jobs", told, "see 'geomill jobs show JOB --events', then cancel or retry it")


async def _parked(conn: Connection) -> Diagnosis:
    found = await jobs.parked(conn, limit=5)
    if not found:
        return Diagnosis(Level.OK, "parked jobs", "none")
    told = "; ".join(f"{one.job_id} ({one.workflow_id}): {one.parked_reason}" for one in found)
    return Diagnosis(Level.WARN, "parked jobs", told, "mend the cause, then run 'geomill jobs release JOB'")


async def _horizon(conn: Connection) -> Diagnosis:
    subject, holders = "open transactions", await metrics.horizon(conn)
    if old := [holder for holder in holders if holder.old]:
        remedy = "end it: pg_terminate_backend, ROLLBACK PREPARED or pg_drop_replication_slot"
        return Diagnosis(Level.WARN, subject, "; ".join(holder.told() for holder in old), remedy)
    oldest = max((holder.seconds or 0.0 for holder in holders), default=0.0)
    return Diagnosis(Level.OK, subject, f"the oldest for {oldest:.0f} s" if holders else "none but this one")
