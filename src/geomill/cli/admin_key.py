"""The administrator's key of a data folder: one line in a file that only its owner reads, and its row in the database.

Either may be lost. Without the file a new key is made and the old one revoked; without the row (a new database) the key
in the file gets one. A key that somebody revoked stays so: the file gets a new one.
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from geomill.cli import folder
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.errors import NotFoundError
from geomill.store import keys
from geomill.store.pool import Connection, open_pool

log = logging.getLogger(__name__)


async def ensure(url: str, data: Path, *, shared: bool) -> None:
    """In a `shared` database each machine has an administrator's key of its own."""
    name = f"admin@{socket.gethostname()}"[:64] if shared else "admin"
    async with open_pool(url, size=1) as pool, pool.connection() as conn, conn.transaction():
        await keys.lock(conn)  # two that start at once must not revoke each other's
        secret = folder.read_key(data)
        if secret is None or await _is_spent(conn, secret):
            secret = Secret.new()
        if await keys.find(conn, secret.key_id) is None:
            await _replace(conn, name, secret)
        folder.write_key(data, secret)


async def _is_spent(conn: Connection, secret: Secret) -> bool:
    found = await keys.find(conn, secret.key_id)
    return found is not None and not (found.valid and found.key.fits(secret) and Role.ADMIN in found.key.roles)


async def _replace(conn: Connection, name: str, secret: Secret) -> None:
    try:
        former = await keys.revoke(conn, name)
    except NotFoundError:
        pass  # the first one
    else:
        log.warning("the former administrator's key was revoked", extra={"action": "keys", **former.log_context()})
    await keys.create(conn, secret, name=name, roles=[Role.ADMIN], created_by="geomill up")
