"""Installs and upgrades pgstac, which holds the catalogue.

Its migrations are files of the package pypgstac. Its own tool is not used, because it changes how psycopg reads JSON in
the whole process and commits by itself.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from geomill.errors import DatabaseUnfit
from geomill.sql import queries
from geomill.store import pgstac_repair, schema_objects
from geomill.store.diff import Change
from geomill.store.schema_objects import of_pgstac

_NAME = re.compile(r"pgstac\.(?:(\d+\.\d+\.\d+)-)?(\d+\.\d+\.\d+)\.sql")
_AFTERWARDS = "\nRESET ROLE; RESET search_path; RESET pgstac.use_queue;"
"""Resets the session, which the files leave as another role."""
_DRAIN = "\nRESET ROLE; SET search_path TO pgstac, public; SELECT run_queued_queries_intransaction();"
"""Runs the work that the upgrade files postpone in a database with items."""
_ROLES = (
    re.compile(r"DO \$\$\s*BEGIN\s*CREATE ROLE pgstac_\w+;.*?END\s*\$\$;", re.DOTALL | re.IGNORECASE),
    re.compile(r"^GRANT pgstac_\w+ TO (?:current_user|pgstac_\w+);", re.MULTILINE | re.IGNORECASE),
    re.compile(r"^ALTER ROLE pgstac_\w+ SET SEARCH_PATH TO pgstac, public;", re.MULTILINE | re.IGNORECASE),
)
"""Statements of the files about roles. Only a superuser may run them, even if nothing is left to do. `pgstac_roles`
does the same for missing roles only."""


def wanted() -> str:
    return version("pypgstac")


async def installed(conn: AsyncConnection[Any]) -> str | None:
    async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("migration").pgstac_there)
        row = await cursor.fetchone()
        if row is None or not row[0]:
            return None
        await cursor.execute(queries("migration").pgstac_version)
        row = await cursor.fetchone()
        return str(row[0]) if row else None


async def changes(conn: AsyncConnection[Any]) -> tuple[Change, ...]:
    """Return the changes that bring the database to this release of pgstac, with geomill's indexes."""
    current = await installed(conn)
    objects = await schema_objects.live(conn, ("pgstac",))
    missing = [name for name in schema_objects.lost(await schema_objects.expected(conn), objects) if of_pgstac(name)]
    repairs: tuple[Change, ...] = ()
    if objects and (missing or current is None):
        repairs = pgstac_repair.changes(current, missing or ["table pgstac.migrations"], objects)
        if current is None:
            return repairs
    upgrade = steps(current)
    pending = repairs + upgrade
    if upgrade or not await _indexed(conn):
        pending += (Change("index who sees what in the catalogue", (queries("migration").index_pgstac,)),)
    return pending


async def _indexed(conn: AsyncConnection[Any]) -> bool:
    async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("migration").pgstac_indexed)
        row = await cursor.fetchone()
        return row is not None and bool(row[0])


def steps(current: str | None) -> tuple[Change, ...]:
    """Return the upgrade steps. Empty if the database has this release or a newer one."""
    target = wanted()
    if current is None:
        return (_change(f"install pgstac {target}", f"pgstac.{target}.sql"),)
    if _number(current) >= _number(target):
        return ()
    return tuple(_change(f"bring pgstac to {name[1]}", f"pgstac.{name[0]}-{name[1]}.sql") for name in _path(current))


def _change(summary: str, file: str) -> Change:
    text = files("pypgstac").joinpath("migrations", file).read_text(encoding="utf-8")
    text = re.sub(r"\A\s*BEGIN\s*;", "", text, flags=re.IGNORECASE)
    text = re.sub(r"COMMIT\s*;\s*\Z", "", text, flags=re.IGNORECASE)
    for pattern in _ROLES:
        text = pattern.sub("", text)
    drain = _DRAIN if "-" in file else ""
    script = queries("roles").pgstac_roles + "\n" + text + drain + _AFTERWARDS
    return Change(summary, (f"-- the file {file} of the package pypgstac",), script=script)


def _path(current: str) -> list[tuple[str, str]]:
    """Return the shortest chain of upgrade files."""
    ways: dict[str, list[str]] = defaultdict(list)
    for file in files("pypgstac").joinpath("migrations").iterdir():
        if (match := _NAME.fullmatch(file.name)) and match[1]:
            ways[match[1]].append(match[2])
    waiting, before = deque([current]), {current: current}
    while waiting:
        place = waiting.popleft()
        for following in ways[place]:
            if following not in before:
                before[following] = place
                waiting.append(following)
    if wanted() not in before:
        raise DatabaseUnfit(
            f"the database has pgstac {current}, from which no upgrade to {wanted()} exists",
            remedy="upgrade it to a published release of pgstac first",
        )
    path, place = [], wanted()
    while place != current:
        path.append((before[place], place))
        place = before[place]
    return path[::-1]


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])
