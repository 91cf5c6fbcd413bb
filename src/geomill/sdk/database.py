"""Where the database is, for handlers that need a session of their own: those in child processes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DatabaseAccess:
    """`url` holds a password, which `repr` leaves out. Empty where there is no database."""

    url: str = field(default="", repr=False)


NO_DATABASE = DatabaseAccess()
"""For contexts without one."""
