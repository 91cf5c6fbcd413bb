"""Who our processes are in the database: each kind of process is a role of its own, with the rights that it needs."""

from __future__ import annotations

from enum import StrEnum


class DatabaseRole(StrEnum):
    OWNER = "geomill_owner"
    """Owns databases and tables: migrates, and runs the commands of an operator."""
    ENGINE = "geomill_engine"
    """Orchestrators and workers: jobs and queues, and the execution state of assets. Writes what is exported."""
    GATEWAY = "geomill_gateway"
    """The HTTP API: jobs, and all that people decide. Outside it can hide an asset, and nothing else."""
    READER = "geomill_reader"
    """What serves tiles, features and catalogue inside."""
    LOADER = "geomill_loader"
    """Task processes: makes the tables of features, and sees nothing else."""
    EXTERNAL = "geomill_external"
    """What serves the external zone. It can connect to that zone's database only."""


LIMITED_ROLES = tuple(role for role in DatabaseRole if role is not DatabaseRole.OWNER)

INSIDE = tuple(role for role in DatabaseRole if role is not DatabaseRole.EXTERNAL)
"""Those that may connect to the internal database."""
OUTSIDE = (DatabaseRole.OWNER, DatabaseRole.ENGINE, DatabaseRole.GATEWAY, DatabaseRole.EXTERNAL)
"""Those that may connect to the external zone's."""
