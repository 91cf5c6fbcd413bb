"""What `geomill doctor` says of the role that it is in the database, and of those that processes are."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection

from geomill.cli.examination import Diagnosis, Level
from geomill.errors import GeomillError
from geomill.store import grants
from geomill.store.administration import Privileges, privileges
from geomill.store.connection import connect

SUBJECT = "database role"


async def examine_roles(url: str) -> list[Diagnosis]:
    try:
        async with await connect(url) as conn:
            me = await privileges(conn)
            return [_role(me), *([] if me.superuser else await _rights(conn))]
    except (GeomillError, psycopg.errors.UndefinedTable):
        return []  # that there is no database, or no schema in it, is told elsewhere


def _role(me: Privileges) -> Diagnosis:
    excess = [text for text, has in (("make roles", me.create_roles), ("make databases", me.create_databases)) if has]
    remedy = "use a role that merely owns the database, or one for each process: see 'geomill db bootstrap'"
    if me.superuser:
        return Diagnosis(Level.WARN, SUBJECT, f"{me.role} is a superuser, which no process needs", remedy)
    if excess:
        return Diagnosis(Level.WARN, SUBJECT, f"{me.role} may {' and '.join(excess)}, which no process needs", remedy)
    return Diagnosis(
        Level.OK, SUBJECT, f"{me.role} {'owns the database' if me.owns_database else 'has limited rights'}"
    )


async def _rights(conn: AsyncConnection[Any]) -> list[Diagnosis]:
    """Of the roles that this one is a member of; a superuser is one of all, also of those of others."""
    found = await grants.deviations(conn)
    if not found:
        return []
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    level = Level.FAIL if any(" may not " in text for text in found) else Level.WARN
    return [Diagnosis(level, "rights", f"{found[0]}{more}", "run 'geomill db migrate' as the owner: it mends that")]
