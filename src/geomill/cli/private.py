"""Who our processes are on the private server. Its superuser sets up the roles once for each release, no more."""

from __future__ import annotations

import asyncio

from geomill.domain.access.database_role import INSIDE, OUTSIDE, DatabaseRole
from geomill.embedded import DATABASE, Cluster

EXTERNAL_DATABASE = "geomill_external"
DATABASES = {DATABASE: INSIDE, EXTERNAL_DATABASE: OUTSIDE}
"""Of the private server, and who may connect to which."""


def prepare(cluster: Cluster) -> None:
    """The server runs. Its databases and roles are made, or brought to this release, if they are not."""
    from geomill.store.set_up import is_set_up, set_up

    owner = cluster.url(role=DatabaseRole.OWNER)
    if asyncio.run(is_set_up(owner, DATABASES)):
        return
    passwords = {role: cluster.password(role) for role in DatabaseRole}
    asyncio.run(set_up(cluster.url, owner, passwords, DATABASES))
