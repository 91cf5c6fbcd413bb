"""The database roles of geomill's processes. Each kind of process has its own role, with only the rights it needs."""

from __future__ import annotations

from enum import StrEnum


class DatabaseRole(StrEnum):
    OWNER = "geomill_owner"
    """Owns databases and tables. Used for migrations and for operators' commands."""
    ENGINE = "geomill_engine"
    """Orchestrators and workers. Writes jobs, queues, the execution state of assets, and exported data."""
    GATEWAY = "geomill_gateway"
    """The HTTP API. Writes jobs and people's decisions. In the external database it can only hide an asset."""
    READER = "geomill_reader"
    """The servers of tiles, features and catalogue in the internal zone."""
    LOADER = "geomill_loader"
    """Task processes. Creates the tables of features and sees nothing else."""
    EXTERNAL = "geomill_external"
    """The servers of the external zone. Can connect only to the external database."""


LIMITED_ROLES = tuple(role for role in DatabaseRole if role is not DatabaseRole.OWNER)

INSIDE = tuple(role for role in DatabaseRole if role is not DatabaseRole.EXTERNAL)
"""The roles that may connect to the internal database."""
OUTSIDE = (DatabaseRole.OWNER, DatabaseRole.ENGINE, DatabaseRole.GATEWAY, DatabaseRole.EXTERNAL)
"""The roles that may connect to the external database."""
