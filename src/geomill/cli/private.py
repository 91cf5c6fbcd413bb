"""Sets up roles and databases on the private server. Only this uses its superuser, once for each release."""

from __future__ import annotations

import asyncio

from geomill.domain.access.database_role import INSIDE, OUTSIDE, DatabaseRole
from geomill.embedded import DATABASE, Cluster

EXTERNAL_DATABASE = "geomill_external"
DATABASES = {DATABASE: INSIDE, EXTERNAL_DATABASE: OUTSIDE}
"""The databases of the private server, and the roles that may connect to each."""


def prepare(cluster: Cluster) -> None:
    """Create or update the databases and roles of the running server, unless they already match this release."""
    from geomill.store.set_up import is_set_up, set_up

    owner = cluster.url(role=DatabaseRole.OWNER)
    if asyncio.run(is_set_up(owner, DATABASES)):
        return
    passwords = {role: cluster.password(role) for role in DatabaseRole}
    asyncio.run(set_up(cluster.url, owner, passwords, DATABASES))
