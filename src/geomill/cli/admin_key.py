"""The administrator's key of a data folder: a file that only its owner can read, and a row in the database.

Either may be lost. Without the file, a new key is created and the old one revoked. Without the row (a new database),
the key in the file gets a row. A revoked key stays revoked: the file gets a new one.
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
    """Make sure that the data folder holds a valid administrator's key. In a `shared` database each machine has its
    own."""
    name = f"admin@{socket.gethostname()}"[:64] if shared else "admin"
    async with open_pool(url, size=1) as pool, pool.connection() as conn, conn.transaction():
        await keys.lock(conn)  # two processes that start at once must not revoke each other's key
        secret = folder.read_key(data)
        if secret is None or await _is_spent(conn, secret):
            secret = Secret.new()
        if await keys.find(conn, secret.key_id) is None:
            await _replace(conn, name, secret)
        folder.write_key(data, secret)


async def _is_spent(conn: Connection, secret: Secret) -> bool:
    stored = await keys.find(conn, secret.key_id)
    return stored is not None and not (stored.valid and stored.key.fits(secret) and Role.ADMIN in stored.key.roles)


async def _replace(conn: Connection, name: str, secret: Secret) -> None:
    try:
        former = await keys.revoke(conn, name)
    except NotFoundError:
        pass  # the first one
    else:
        log.warning("the former administrator's key was revoked", extra={"action": "keys", **former.log_context()})
    await keys.create(conn, secret, name=name, roles=[Role.ADMIN], created_by="geomill up")
