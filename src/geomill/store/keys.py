"""API keys in the database."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from geomill.domain.access.api_key import ApiKey, Secret, require_binding
from geomill.domain.access.principal import MayName, Role
from geomill.domain.jsonvalue import to_json
from geomill.errors import ConflictError, InputError, NotFoundError, nearest
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key, and whether it has expired by the database's clock."""

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
    may_name: MayName = MayName.ALLOWED,
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
        "may_name": may_name,
        "created_by": created_by,
        "expires_seconds": expires_seconds,
    }
    row = await (await conn.execute(queries("keys").create, values)).fetchone()
    if row is None:
        raise ConflictError(f"there is already a key '{name}'", remedy="choose another name, or revoke it first")
    return ApiKey.from_row(row)


async def find_many(conn: Connection, key_ids: Collection[str]) -> dict[str, StoredKey]:
    """Return the keys that exist, by id."""
    rows = await (await conn.execute(queries("keys").find_many, {"key_ids": list(key_ids)})).fetchall()
    return {row["key_id"]: StoredKey(ApiKey.from_row(row), row["expired"]) for row in rows}


async def find(conn: Connection, key_id: str) -> StoredKey | None:
    return (await find_many(conn, [key_id])).get(key_id)


async def everything(conn: Connection) -> list[ApiKey]:
    return [ApiKey.from_row(row) for row in await (await conn.execute(queries("keys").all)).fetchall()]


async def revoke(conn: Connection, key: str) -> ApiKey:
    """Revoke a key, given by its id or its name."""
    row = await (await conn.execute(queries("keys").revoke, {"key": key})).fetchone()
    if row is None:
        valid = [stored for stored in await everything(conn) if stored.revoked_at is None]
        names = [name for stored in valid for name in (stored.key_id, stored.name)]
        raise NotFoundError(f"there is no key '{key}' that could be revoked", remedy=nearest(key, names))
    return ApiKey.from_row(row)


async def used(conn: Connection, key_ids: Collection[str]) -> None:
    """Note that the keys were used, once a minute at most. Roles that only read by default write nothing else."""
    async with conn.transaction():
        await conn.execute(queries("keys").read_write)
        await conn.execute(queries("keys").used, {"key_ids": list(key_ids)})


async def lock(conn: Connection) -> None:
    """Let nobody else create or revoke keys until the transaction ends. Reading goes on."""
    await conn.execute(queries("keys").lock)


async def page(
    conn: Connection, *, revoked: bool, limit: int, before: tuple[datetime, str] | None = None
) -> list[ApiKey]:
    """Return keys, the newest first. `before` is the creation time and id of the last one of the page before."""
    moment, key_id = before or (None, None)
    parameters = {"revoked": revoked, "limit": limit, "before": moment, "before_id": key_id}
    return [ApiKey.from_row(row) for row in await (await conn.execute(queries("keys").page, parameters)).fetchall()]


async def revoke_id(conn: Connection, key_id: str) -> ApiKey | None:
    """Revoke a key by its id. Returns None if there is no valid key with this id."""
    row = await (await conn.execute(queries("keys").revoke_id, {"key_id": key_id})).fetchone()
    return ApiKey.from_row(row) if row else None
