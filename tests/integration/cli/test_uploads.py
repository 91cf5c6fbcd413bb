"""`geomill assets submit` against a real gateway: what it uploads in vain does not stay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

from geomill.api import create_app
from geomill.cli import folder
from geomill.cli.gateway import listen
from geomill.cli.main import app
from geomill.cli.shapefiles import as_one_file
from geomill.domain.access.principal import Role
from geomill.settings import AccessSettings, QueueSettings
from geomill.storage import Storage, StorageRecipe
from tests.integration.api.conftest import make_key
from tests.integration.cli.test_client import serving
from tests.integration.engine.conftest import make_platform as make_platform
from tests.integration.engine.platform import EnginePlatform

TIFF = b"II*\0" + bytes(1000)
REFS = ("--ref", "dataset_id=d", "--ref", "resource_id=r", "--ref", "version_id=v")


@pytest.fixture
async def data(make_platform: Callable[..., EnginePlatform], database: str, tmp_path: Path) -> AsyncIterator[Path]:
    """The data folder of a gateway, without anybody who would run what is submitted."""
    storage = Storage(StorageRecipe.in_folder(tmp_path))
    await storage.prepare()
    gateway = create_app(
        database, make_platform().workflow_registry, QueueSettings(), AccessSettings(), storage=storage
    )
    folder.write_key(tmp_path, await make_key(database, Role.ADMIN))
    with listen("127.0.0.1", 0) as listener:
        async with serving(gateway, listener) as address:
            with folder.published_address(tmp_path, address):
                yield tmp_path


async def submit(data: Path, content: bytes, *more: str) -> Any:
    file = data / "a.tif"
    file.write_bytes(content)
    words = ["--data", str(data), "assets", "submit", str(file), "--data-type", "raster", *REFS, *more]
    return await asyncio.to_thread(CliRunner().invoke, app, words)


async def run(data: Path, *words: str) -> Any:
    return await asyncio.to_thread(CliRunner().invoke, app, ["--data", str(data), *words])


def uploads(data: Path) -> list[Path]:
    return [path for path in (data / "bronze").rglob("*") if path.is_file()]


async def test_a_dry_run_leaves_no_upload(data: Path) -> None:
    done = await submit(data, TIFF, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "would be created" in done.output
    assert uploads(data) == []


@pytest.mark.parametrize(
    ("content", "more"),
    [(b"no raster" * 10, ("--workflow", "none_such")), (b"", ()), (TIFF, ("--option", "no_such=1"))],
)
async def test_a_refusal_leaves_no_upload(data: Path, content: bytes, more: tuple[str, ...]) -> None:
    done = await submit(data, content, *more)
    assert done.exception is not None
    assert uploads(data) == []


async def test_an_order_that_was_given_before_leaves_only_its_own(data: Path) -> None:
    first = await submit(data, TIFF, "--idempotency-key", "once")
    assert first.exit_code == 0, first.output
    (upload,) = uploads(data)
    again = await submit(data, TIFF, "--idempotency-key", "once")
    assert again.exit_code == 0, again.output
    assert uploads(data) == [upload]
    refused = await submit(data, TIFF)
    assert "overwrite" in str(refused.exception)
    assert uploads(data) == [upload]


async def test_nothing_is_uploaded_when_no_gateway_answers(data: Path) -> None:
    with folder.published_address(data, "http://127.0.0.1:9"):
        done = await submit(data, TIFF)
    assert "no gateway answers" in str(done.exception)
    assert uploads(data) == []


async def test_a_shapefile_is_sent_as_one_zip(data: Path) -> None:
    for suffix in (".shp", ".shx", ".DBF", ".prj", ".qml", ".txt"):
        (data / f"roads{suffix}").write_bytes(suffix.encode())
    with as_one_file(data / "roads.shp") as packed, as_one_file(data / "roads.shp") as again:
        assert packed.read_bytes() == again.read_bytes()
        with ZipFile(packed) as archive:
            assert archive.namelist() == ["roads.DBF", "roads.prj", "roads.qml", "roads.shp", "roads.shx"]
    words = ["assets", "submit", str(data / "roads.shp"), "--data-type", "vector", *REFS]
    done = await run(data, *words)
    assert done.exit_code == 0, done.output
    assert [path.name for path in uploads(data)] == ["roads.zip"]


async def test_the_files_beside_a_raster_go_along(data: Path) -> None:
    folder = data / "mine"
    folder.mkdir()
    picture = folder / "a.jpg"
    picture.write_bytes(b"\xff\xd8\xff" + bytes(1000))
    for name in ("a.jgw", "a.qml", "a.jpg.aux.xml", "b.jgw", "a.txt"):
        (folder / name).write_bytes(name.encode())
    words = ["assets", "submit", str(picture), "--data-type", "raster", *REFS]
    assert (await run(data, *words, "--dry-run")).exit_code == 0
    assert uploads(data) == []
    done = await run(data, *words)
    assert done.exit_code == 0, done.output
    sent = uploads(data)
    assert sorted(path.name for path in sent) == ["a.jgw", "a.jpg", "a.jpg.aux.xml", "a.qml"]
    assert len({path.parent for path in sent}) == 1
    assert "overwrite" in str((await run(data, *words)).exception)
    assert set(uploads(data)) == set(sent)  # the earlier ones stay
    (folder / "a.jgw").write_bytes(b"another place")
    again = await run(data, *words, "--overwrite")
    assert again.exit_code == 0, again.output
    assert len(uploads(data)) == 8


async def test_uploads_from_the_command_line(data: Path) -> None:
    file = data / "b.tif"
    file.write_bytes(TIFF)
    sent = json.loads((await run(data, "uploads", "send", str(file), "--platform", "ddh", "--json")).stdout)
    assert (sent["status"], sent["received_bytes"]) == ("complete", len(TIFF))
    (listed,) = json.loads((await run(data, "uploads", "list", "--status", "complete", "--json")).stdout)
    assert listed == sent
    assert sent["upload_id"] in (await run(data, "uploads", "list")).output
    assert f"file {sent['file_name']}" in (await run(data, "uploads", "show", sent["upload_id"])).output
    refused = await run(data, "uploads", "from-url", "https://example.org/a.tif", "--platform", "ddh")
    assert "GEOMILL_UPLOAD_FROM" in str(refused.exception)
    assert (await run(data, "uploads", "remove", sent["upload_id"])).exit_code == 0
    assert uploads(data) == []


async def test_the_cleanup_from_the_command_line(data: Path) -> None:
    assert "Nothing is old enough" in (await run(data, "storage", "cleanup", "--dry-run")).output
    assert "There are no files" in (await run(data, "storage", "usage", "--platforms")).output
