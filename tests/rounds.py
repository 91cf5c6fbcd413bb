"""The statement of a round, from the names of its parts in `rounds.sql`."""

from __future__ import annotations

from geomill.sql import queries
from geomill.store import rounds


def round_statement(*names: str, fence: str = "fence") -> str:
    statements = vars(queries("rounds"))
    parts = tuple(rounds.RoundPart(name, statements[name]) for name in names)
    return rounds.round_statement(statements[fence], parts)
