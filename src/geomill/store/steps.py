"""Numbered steps of the migration: what the difference between models and database cannot express.

`sql/steps/README.md` says how to write one. A database without a record of steps is either new, and needs none, or
comes from a release that had no steps, and needs all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Self

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from geomill.domain.entity import Entity
from geomill.domain.schema_step import SchemaStep
from geomill.sql import queries, step_files

_FILE = re.compile(r"(?P<number>\d{4})-[a-z0-9-]+\.sql")
_HEADER = re.compile(
    r"-- (?P<title>\S.{0,198})\n-- run: (?P<moment>before|after|batches)\n"
    r"-- database: (?P<database>inside|outside|both)\n(?P<statements>.+)",
    re.DOTALL,
)


class Moment(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    BATCHES = "batches"


class StepDatabase(StrEnum):
    INSIDE = "inside"
    OUTSIDE = "outside"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class MigrationStep:
    number: int
    title: str
    moment: Moment
    database: StepDatabase
    statements: str

    @classmethod
    def parse(cls, file_name: str, text: str) -> Self:
        name, header = _FILE.fullmatch(file_name), _HEADER.fullmatch(text)
        if name is None or int(name["number"]) == 0:
            raise ValueError(f"sql/steps/{file_name}: a step is called like 0007-rename-the-column-note.sql")
        if header is None or not header["statements"].strip():
            raise ValueError(
                f"sql/steps/{file_name}: a step begins with its title, '-- run: …' and '-- database: …', then has SQL"
            )
        moment, database = Moment(header["moment"]), StepDatabase(header["database"])
        return cls(int(name["number"]), header["title"].strip(), moment, database, header["statements"].strip())

    @property
    def summary(self) -> str:
        return f"run step {self.number}: {self.title}"


@cache
def shipped_steps() -> tuple[MigrationStep, ...]:
    """The steps of this release, in their order."""
    steps = tuple(MigrationStep.parse(name, text) for name, text in step_files().items())
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError("sql/steps: the numbers of the steps have a gap or a repetition")
    return steps


def steps_for(tables: Sequence[type[Entity]], *, outside: bool) -> tuple[MigrationStep, ...]:
    """The steps for a database with these tables. Tables without a record of steps have none."""
    if SchemaStep not in tables:
        return ()
    databases = (StepDatabase.OUTSIDE if outside else StepDatabase.INSIDE, StepDatabase.BOTH)
    return tuple(step for step in shipped_steps() if step.database in databases)


async def pending_steps(conn: AsyncConnection[Any], steps: Sequence[MigrationStep]) -> tuple[MigrationStep, ...]:
    """The steps that this database has not had."""
    applied = await applied_numbers(conn) if steps else set()
    return tuple(step for step in steps if step.number not in applied)


async def applied_numbers(conn: AsyncConnection[Any]) -> set[int]:
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("schema_steps").there)
        row = await cursor.fetchone()
        if row is None or not row[0]:
            return set()
        await cursor.execute(queries("schema_steps").applied)
        return {number for (number,) in await cursor.fetchall()}


async def record_steps(conn: AsyncConnection[Any], steps: Iterable[MigrationStep]) -> None:
    for step in steps:
        await conn.execute(queries("schema_steps").record, {"number": step.number, "title": step.title})
