"""API keys in the database."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from geomill.domain.access.api_key import ApiKey, Secret, require_binding
from geomill.domain.access.principal import Role
from geomill.domain.jsonvalue import to_json
from geomill.errors import ConflictError, InputError, NotFoundError, nearest
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key, and whether its time is over by the database's clock."""

    key: ApiKey
    expired: bool

    @property
    def valid(self) -> bool:
        return not self.expired and self.key.revoked_at is None


async def create(
    conn: Connection,
    secret: Secret,
    *,
    name: str,
    roles: Collection[Role],
    created_by: str,
    platform_id: str | None = None,
    expires_seconds: float | None = None,
) -> ApiKey:
    if not roles:
        raise InputError("a key needs a role", remedy=f"known: {', '.join(Role)}")
    require_binding(frozenset(roles), platform_id)
    values = {
        "key_id": secret.key_id,
        "secret_hash": secret.hash(),
        "name": name,
        "roles": to_json([role.value for role in dict.fromkeys(roles)]),
        "platform_id": platform_id,
        "created_by": created_by,
        "expires_seconds": expires_seconds,
    }
    row = await (await conn.execute(queries("keys").create, values)).fetchone()
    if row is None:
        raise ConflictError(f"there is already a key '{name}'", remedy="choose another name, or revoke it first")
    return ApiKey.from_row(row)


async def find_many(conn: Connection, key_ids: Collection[str]) -> dict[str, StoredKey]:
    """Those that there are, by id."""
    rows = await (await conn.execute(queries("keys").find_many, {"key_ids": list(key_ids)})).fetchall()
    return {row["key_id"]: StoredKey(ApiKey.from_row(row), row["expired"]) for row in rows}


async def find(conn: Connection, key_id: str) -> StoredKey | None:
    return (await find_many(conn, [key_id])).get(key_id)


async def everything(conn: Connection) -> list[ApiKey]:
    return [ApiKey.from_row(row) for row in await (await conn.execute(queries("keys").all)).fetchall()]


async def revoke(conn: Connection, wanted: str) -> ApiKey:
    """By id or by name."""
    row = await (await conn.execute(queries("keys").revoke, {"wanted": wanted})).fetchone()
    if row is None:
        known = [name for key in await everything(conn) if key.revoked_at is None for name in (key.key_id, key.name)]
        raise NotFoundError(f"there is no key '{wanted}' that could be revoked", remedy=nearest(wanted, known))
    return ApiKey.from_row(row)


async def used(conn: Connection, key_ids: Collection[str]) -> None:
    """Notes that they were, once a minute at most. It is all that a role writes whose sessions only read by default."""
    async with conn.transaction():
        await conn.execute(queries("keys").read_write)
        await conn.execute(queries("keys").used, {"key_ids": list(key_ids)})


async def lock(conn: Connection) -> None:
    """Nobody else makes or revokes keys until the transaction ends; reading goes on."""
    await conn.execute(queries("keys").lock)
