"""The administrator's key: file and row, whichever of them was lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from geomill.cli import admin_key, folder
from geomill.domain.access.api_key import ApiKey, Secret
from geomill.domain.access.principal import Role
from geomill.errors import SettingsError
from geomill.store import keys
from geomill.store.pool import Pool


async def live(pool: Pool) -> list[ApiKey]:
    async with pool.connection() as conn:
        return [key for key in await keys.everything(conn) if key.revoked_at is None]


async def ensured(database: str, data: Path, *, shared: bool = False) -> Secret:
    await admin_key.ensure(database, data, shared=shared)
    secret = folder.read_key(data)
    assert secret is not None
    assert (data / "admin.key").stat().st_mode & 0o777 == 0o600
    return secret


async def test_it_is_made_once_and_kept(database: str, pool: Pool, tmp_path: Path) -> None:
    first = await ensured(database, tmp_path / "new")
    assert await ensured(database, tmp_path / "new") == first
    (key,) = await live(pool)
    assert (key.name, key.roles, key.fits(first)) == ("admin", [Role.ADMIN], True)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["admin.key"]


@pytest.mark.parametrize("left", [None, "", "rubbish\n", "\x00\xff"])
async def test_a_lost_file(database: str, pool: Pool, tmp_path: Path, left: str | None) -> None:
    first = await ensured(database, tmp_path)
    (tmp_path / "admin.key").unlink()
    if left is not None:
        (tmp_path / "admin.key").write_text(left)
    second = await ensured(database, tmp_path)
    assert second != first
    assert [key.fits(second) for key in await live(pool)] == [True]


async def test_a_new_database(database: str, pool: Pool, tmp_path: Path) -> None:
    first = await ensured(database, tmp_path)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM app.api_keys")
    (tmp_path / "admin.key").chmod(0o644)
    assert await ensured(database, tmp_path) == first
    assert [key.fits(first) for key in await live(pool)] == [True]


async def test_what_was_revoked_stays_so(database: str, pool: Pool, tmp_path: Path) -> None:
    first = await ensured(database, tmp_path)
    async with pool.connection() as conn:
        await keys.revoke(conn, "admin")
    second = await ensured(database, tmp_path)
    assert second != first
    assert [key.fits(second) for key in await live(pool)] == [True]


async def test_a_file_with_the_id_of_another_key(database: str, pool: Pool, tmp_path: Path) -> None:
    """The id alone is no secret: it must not make somebody's key the administrator's."""
    reader = Secret.new()
    async with pool.connection() as conn:
        await keys.create(conn, reader, name="reader", roles=[Role.READER], created_by="me")
    folder.write_key(tmp_path, reader)
    secret = await ensured(database, tmp_path)
    assert secret.key_id != reader.key_id
    assert {key.name for key in await live(pool)} == {"reader", "admin"}


async def test_many_at_once_agree(database: str, pool: Pool, tmp_path: Path) -> None:
    await asyncio.gather(*(admin_key.ensure(database, tmp_path, shared=False) for _ in range(6)))
    secret = folder.read_key(tmp_path)
    assert secret is not None
    assert [key.fits(secret) for key in await live(pool)] == [True]


async def test_on_a_shared_database_each_machine_has_its_own(
    database: str, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets: dict[str, Any] = {}
    for host in ("one", "two"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        secrets[host] = await ensured(database, tmp_path / host, shared=True)
    assert {key.name for key in await live(pool)} == {"admin@one", "admin@two"}


def test_the_address_is_there_meanwhile(tmp_path: Path) -> None:
    with folder.published_address(tmp_path, "http://127.0.0.1:1"):
        assert folder.read_address(tmp_path) == "http://127.0.0.1:1"
    assert folder.read_address(tmp_path) is None
    with (
        folder.published_address(tmp_path, "http://127.0.0.1:1"),
        folder.published_address(tmp_path, "http://127.0.0.1:2"),
    ):
        pass
    assert folder.read_address(tmp_path) is None
    with pytest.raises(SettingsError, match="cannot be written"), folder.published_address(Path("/proc/no"), "x"):
        pass
