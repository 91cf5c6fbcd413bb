"""The checks of `geomill doctor` on database roles: its own, and the rights of the other processes' roles."""

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
            own_privileges = await privileges(conn)
            return [_own_role(own_privileges), *([] if own_privileges.superuser else await _rights(conn))]
    except (GeomillError, psycopg.errors.UndefinedTable):
        return []  # another finding reports a missing database or schema


def _own_role(own_privileges: Privileges) -> Diagnosis:
    excess = [
        text
        for text, granted in (
            ("create roles", own_privileges.create_roles),
            ("create databases", own_privileges.create_databases),
        )
        if granted
    ]
    remedy = "use a role that only owns the database, or one role for each process: see 'geomill db bootstrap'"
    if own_privileges.superuser:
        return Diagnosis(Level.WARN, SUBJECT, f"{own_privileges.role} is a superuser, which no process needs", remedy)
    if excess:
        return Diagnosis(
            Level.WARN, SUBJECT, f"{own_privileges.role} may {' and '.join(excess)}, which no process needs", remedy
        )
    return Diagnosis(
        Level.OK,
        SUBJECT,
        f"{own_privileges.role} {'owns the database' if own_privileges.owns_database else 'has limited rights'}",
    )


async def _rights(conn: AsyncConnection[Any]) -> list[Diagnosis]:
    """Check the rights of the roles that this one is a member of. A superuser counts as a member of all roles."""
    deviations = await grants.deviations(conn)
    if not deviations:
        return []
    more = f" and {len(deviations) - 1} more" if len(deviations) > 1 else ""
    level = Level.FAIL if any(" may not " in text for text in deviations) else Level.WARN
    return [
        Diagnosis(
            level, "rights", f"{deviations[0]}{more}", "run 'geomill db migrate' as the owner to correct the rights"
        )
    ]
