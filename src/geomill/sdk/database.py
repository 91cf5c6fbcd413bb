"""Access to the database for handlers in child processes, which open their own session."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DatabaseAccess:
    """The URL of the database; empty if there is none. `repr` does not show it, because it contains a password."""

    url: str = field(default="", repr=False)


NO_DATABASE = DatabaseAccess()
"""For contexts without a database."""
