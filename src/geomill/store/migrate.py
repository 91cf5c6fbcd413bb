"""Brings a database to the models: by the additive difference, and by the numbered steps of `store/steps.py`.

Any number of processes may call `migrate` at once: an advisory lock lets one work, and the others find nothing to do.
Steps and additive changes are made in one transaction or not at all, with two exceptions. New enum values are committed
first, because PostgreSQL lets no check, index or trigger use them earlier; an unused value harms nobody. Backfills in
batches follow in transactions of their own; one that breaks off goes on with the next migration.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row, tuple_row
from psycopg.sql import SQL, Identifier

from geomill.domain.entity import Entity
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.errors import ConflictError, DestructiveMigration, UnavailableError
from geomill.sql import queries
from geomill.store import administration, fingerprint, grants, pgstac, schema_objects
from geomill.store.describe import describe, table_name
from geomill.store.diff import Change, Effect, diff, needs_empty
from geomill.store.fitness import Fitness, check_fitness
from geomill.store.schema_reading import read_live, read_models
from geomill.store.signals import SCHEMA_CHANNEL, notify
from geomill.store.steps import MigrationStep, Moment, pending_steps, record_steps, steps_for

LOCK_KEY = int.from_bytes(b"geomill")
MOST_COLLISIONS = 10
LEADER_TIMEOUT = 300.0
"""Seconds to wait for another process that migrates."""
PLAN_LOCK_TIMEOUT = 2.0
"""Seconds to wait for a table that a step renames. To plan is to hold it for a moment, and others wait meanwhile."""

Models = Sequence[type[Entity]]


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    changes: tuple[Change, ...]
    """In the order in which they are made."""
    records: tuple[MigrationStep, ...] = ()
    """Numbered steps that this database has had when all changes but the batches are made."""
    batches: tuple[MigrationStep, ...] = ()
    """Numbered steps that run after the other changes have been committed."""

    @property
    def permitted(self) -> tuple[Change, ...]:
        """The changes that `migrate` makes."""
        return tuple(change for change in self.changes if change.effect is not Effect.DESTRUCTIVE)

    @property
    def immediate(self) -> tuple[Change, ...]:
        """The changes that `migrate` makes in its one transaction."""
        return tuple(change for change in self.permitted if change.effect is not Effect.BATCHES)

    @property
    def enum_values(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.effect is Effect.ENUM_VALUE)

    @property
    def destructive(self) -> tuple[Change, ...]:
        """The changes that `migrate` refuses to make."""
        return tuple(change for change in self.changes if change.effect is Effect.DESTRUCTIVE)

    def refuse_destruction(self) -> None:
        if self.destructive:
            count, first = len(self.destructive), self.destructive[0].summary
            more = f" and {count - 1} more" if count > 1 else ""
            raise DestructiveMigration(
                f"the migration would have to {first}{more}; nothing was changed",
                statements=[statement for change in self.destructive for statement in change.statements],
                remedy="run the statements by hand if they are meant, then migrate again",
            )


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The changes that a migration made. There are none if the database was up to date."""

    done: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    fitness: Fitness
    plan: MigrationPlan
    pgstac: str | None = None

    @property
    def up_to_date(self) -> bool:
        return not self.plan.changes


async def plan(
    conn: AsyncConnection[Any], tables: Models = TABLES, *, steps: Sequence[MigrationStep] | None = None
) -> MigrationPlan:
    """Returns the differences between the database and the models, and the steps that are due. Leaves nothing behind.

    Steps that come before the difference run in the transaction that is rolled back, since they change it. `steps`
    replaces those of this release."""
    fitness = await check_fitness(conn)
    extensions = _extensions(fitness)
    all_steps = steps_for(tables, outside=tables is EXTERNAL_TABLES) if steps is None else tuple(steps)
    async with _privileged(conn), _named_holders(conn, tables), conn.transaction(force_rollback=True):
        model_schema = await read_models(conn, tables, [sql for change in extensions for sql in change.statements])
        model, live = describe(tables), await read_live(conn, tables)
        due = await pending_steps(conn, all_steps) if live.tables else ()
        before = _step_changes(due, Moment.BEFORE)
        if before:
            await _set_lock_timeout(conn, PLAN_LOCK_TIMEOUT)
            await _apply(conn, before)
            live = await read_live(conn, tables)
        occupied = await _occupied(conn, tables, needs_empty(model, live))
    difference = (*await _catalogue(conn, tables), *diff(model, model_schema, live, occupied))
    later = (*_step_changes(due, Moment.AFTER), *_step_changes(due, Moment.BATCHES))
    batches = tuple(step for step in due if step.moment is Moment.BATCHES)
    had = tuple(step for step in (due if live.tables else all_steps) if step not in batches)
    return MigrationPlan((*extensions, *before, *difference, *later), had, batches)


def _step_changes(steps: Iterable[MigrationStep], moment: Moment) -> tuple[Change, ...]:
    effect = Effect.BATCHES if moment is Moment.BATCHES else Effect.ADDITIVE
    return tuple(
        Change(step.summary, (step.statements,), effect, number=step.number) for step in steps if step.moment is moment
    )


async def _catalogue(conn: AsyncConnection[Any], tables: Models) -> tuple[Change, ...]:
    if not any(model.__sql_schema__ == "catalogue" for model in tables):
        return ()
    return await pgstac.changes(conn)


async def status(conn: AsyncConnection[Any], tables: Models = TABLES) -> MigrationStatus:
    return MigrationStatus(await check_fitness(conn), await plan(conn, tables), await pgstac.installed(conn))


async def migrate(
    conn: AsyncConnection[Any],
    tables: Models = TABLES,
    *,
    steps: Sequence[MigrationStep] | None = None,
    lock_timeout: float = 10.0,
) -> MigrationReport:
    """Make every permitted change, or raise `DestructiveMigration` and make none.

    `lock_timeout` bounds, in seconds, the wait for a reader or writer that holds a table. `steps` replaces the numbered
    steps of this release."""
    if conn.info.transaction_status is not TransactionStatus.IDLE:
        raise RuntimeError("migrate() commits: it needs a connection on which no transaction is open")
    done: list[Change] = []
    collisions = 0
    while True:
        try:
            async with _privileged(conn), _leadership(conn, tables, lock_timeout):
                extensions = await _create_extensions(conn)
                current = await plan(conn, tables, steps=steps)
                current.refuse_destruction()
                changes = current.enum_values or current.immediate
                await _apply(conn, changes)
                if not current.enum_values:
                    changes = (*changes, *await _finish(conn, tables, current.records))
        except (
            psycopg.errors.UniqueViolation,
            psycopg.errors.InternalError_,
            psycopg.errors.DeadlockDetected,
        ) as error:
            collisions += 1
            if collisions > MOST_COLLISIONS or not _collided(error):
                raise
            await asyncio.sleep(random.uniform(0.1, 1.0))  # noqa: S311  nothing secret
            continue
        done += [*extensions, *changes]
        if not current.enum_values:
            done += await _run_batches(conn, tables, current.batches, lock_timeout)
            await notify(conn, [SCHEMA_CHANNEL] if done else [])
            return MigrationReport(tuple(done))


async def _run_batches(
    conn: AsyncConnection[Any], tables: Models, steps: Sequence[MigrationStep], lock_timeout: float
) -> tuple[Change, ...]:
    """Repeats each backfill until it changes no row. Several processes that migrate take turns, batch by batch."""
    for step in steps:
        (change,) = _step_changes([step], Moment.BATCHES)
        rows = 1
        while rows > 0:
            async with _privileged(conn), _leadership(conn, tables, lock_timeout):
                rows = await _apply_change(conn, change)
                if rows <= 0:
                    await record_steps(conn, [step])
    return _step_changes(steps, Moment.BATCHES)


async def _finish(conn: AsyncConnection[Any], tables: Models, steps: Sequence[MigrationStep]) -> tuple[Change, ...]:
    """Grants rights and records what a later look expects to be there. Returns further changes that were needed: an
    upgrade of pgstac may leave a function that differs from that of a new installation."""
    await grants.apply(conn, tables)
    await record_steps(conn, steps)
    if tables is not TABLES and tables is not EXTERNAL_TABLES:
        return ()
    await schema_objects.record(conn)
    repairs = MigrationPlan(await _catalogue(conn, tables))
    repairs.refuse_destruction()
    if repairs.permitted:
        await _apply(conn, repairs.permitted)
        await schema_objects.record(conn)
    if tables is TABLES:
        await fingerprint.store(conn)
    return repairs.permitted


def _collided(error: psycopg.Error) -> bool:
    """Roles belong to all databases of a server, and our lock to one: two that migrate at once can meet there. And a
    migration locks table after table, as processes that run do in another order."""
    if isinstance(error, psycopg.errors.DeadlockDetected):
        return True
    return error.diag.schema_name == "pg_catalog" or "tuple concurrently" in str(error.diag.message_primary)


@asynccontextmanager
async def _leadership(conn: AsyncConnection[Any], tables: Models, lock_timeout: float) -> AsyncIterator[None]:
    """A transaction in which no other process migrates."""
    async with _named_holders(conn, tables), conn.transaction():
        await conn.execute(queries("migration").read_committed)
        await _set_lock_timeout(conn, LEADER_TIMEOUT)
        await conn.execute(queries("migration").lock, {"key": LOCK_KEY})
        await _set_lock_timeout(conn, lock_timeout)
        yield


@asynccontextmanager
async def _named_holders(conn: AsyncConnection[Any], tables: Models) -> AsyncIterator[None]:
    """Around the outermost transaction: an error about a lock names the sessions that hold our tables."""
    try:
        yield
    except psycopg.errors.LockNotAvailable:
        if conn.info.transaction_status is not TransactionStatus.IDLE:
            raise
        holders = await _lock_holders(conn, tables)
        raise UnavailableError(
            f"the migration waited in vain for a lock; {holders}; nothing was changed",
            remedy="end those sessions or wait for them, then migrate again",
        ) from None


async def _set_lock_timeout(conn: AsyncConnection[Any], seconds: float) -> None:
    await conn.execute(queries("migration").lock_timeout, {"milliseconds": int(seconds * 1000)})


async def _lock_holders(conn: AsyncConnection[Any], tables: Models) -> str:
    """Who holds a lock on our tables now: it may be a moment after the fact, and is no more than a hint."""
    schemas = list({model.__sql_schema__ for model in tables})
    async with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("migration").lock_holders, {"schemas": schemas})
        holders = [f"process {row['pid']} ({row['name']}, {row['state']})" for row in await cursor.fetchall()]
    return "our tables are held by " + ", ".join(holders) if holders else "who held it has let go"


async def _create_extensions(conn: AsyncConnection[Any]) -> tuple[Change, ...]:
    """Before the plan is made: a model may use a type or an operator that an extension brings."""
    fitness = await check_fitness(conn)
    steps = _extensions(fitness)
    await _apply(conn, steps)
    return steps


def _extensions(fitness: Fitness) -> tuple[Change, ...]:
    return tuple(
        Change(f"create extension {name}", (f"CREATE EXTENSION IF NOT EXISTS {name}",)) for name in fitness.missing
    )


async def _apply(conn: AsyncConnection[Any], changes: Iterable[Change]) -> None:
    for change in changes:
        await _apply_change(conn, change)


async def _apply_change(conn: AsyncConnection[Any], change: Change) -> int:
    """Returns the number of rows that the last statement changed."""
    try:
        cursor = await conn.execute((change.script or ";\n".join(change.statements)).encode())
    except psycopg.IntegrityError as exc:
        if _collided(exc):
            raise
        raise ConflictError(
            f"there are rows that forbid to {change.summary} ({exc.diag.message_primary}); nothing was changed",
            remedy="correct the rows, then migrate again",
        ) from exc
    except (psycopg.ProgrammingError, psycopg.DataError) as exc:
        if change.number is None or isinstance(exc, psycopg.errors.InsufficientPrivilege):
            raise
        raise ConflictError(
            f"the database refuses to {change.summary} ({exc.diag.message_primary}); nothing of it was changed",
            remedy="undo what was changed in the database by hand, then migrate again",
        ) from exc
    return cursor.rowcount


@asynccontextmanager
async def _privileged(conn: AsyncConnection[Any]) -> AsyncIterator[None]:
    """Around the outermost transaction: what an administrator has to do is asked after it has been rolled back."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as exc:
        raise await administration.refusal(conn, str(exc.diag.message_primary)) from exc


async def _occupied(conn: AsyncConnection[Any], tables: Models, names: set[str]) -> set[str]:
    """Those of the named tables that have rows."""
    occupied: set[str] = set()
    for model in tables:
        if table_name(model) in names and await _has_rows(conn, model):
            occupied.add(table_name(model))
    return occupied


async def _has_rows(conn: AsyncConnection[Any], model: type[Entity]) -> bool:
    table = Identifier(model.__sql_schema__, model.__sql_table__)
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(SQL(queries("migration").has_rows).format(table=table))
        row = await cursor.fetchone()
    return row is not None and bool(row[0])
