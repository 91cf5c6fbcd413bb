"""Mistakes that only a folder can make."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from geomill.domain.objectname import Zone
from geomill.errors import InvalidName, StorageUnavailable
from geomill.sdk.testing import folder_storage
from geomill.storage import Storage
from geomill.storage.transfer import PART
from tests.integration.storage.conftest import CONTAINER, bronze


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path / "data")


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "bronze"
    (folder / CONTAINER).mkdir(parents=True)
    return folder


def test_prepare_makes_the_folders(storage: Storage, tmp_path: Path) -> None:
    storage.sync.prepare()
    assert sorted(folder.name for folder in (tmp_path / "data").iterdir()) == ["bronze", "external", "silver"]


def test_files_put_there_by_hand_are_objects(storage: Storage, zone: Path) -> None:
    (zone / CONTAINER / "by hand.tif").write_bytes(b"1")
    assert storage.sync.read(bronze("by hand.tif")) == b"1"


@pytest.mark.parametrize("place", ["file", "folder", "container", "zone"])
def test_a_link_that_leads_outside_is_not_followed(storage: Storage, zone: Path, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    path = "secret"
    if place == "file":
        (zone / CONTAINER / "secret").symlink_to(outside / "secret")
    elif place == "folder":
        (zone / CONTAINER / "link").symlink_to(outside)
        path = "link/secret"
    elif place == "container":
        (zone / CONTAINER).rmdir()
        (zone / CONTAINER).symlink_to(outside)
    else:
        (zone / CONTAINER / "secret").symlink_to(tmp_path / "data" / "silver" / "secret")
    sync = storage.sync
    for work in (
        lambda: sync.read(bronze(path)),
        lambda: sync.stat(bronze(path)),
        lambda: sync.put_bytes(bronze(path), b"changed"),
        lambda: sync.get_file(bronze(path), tmp_path / "got"),
        lambda: sync.copy(bronze(path), bronze("copy")),
        lambda: sync.delete(bronze(path)),
        lambda: storage.gdal_path(bronze(path)),
    ):
        with pytest.raises(InvalidName, match="leads out of the zone 'bronze' by a symbolic link"):
            work()
    assert sync.list(Zone.BRONZE, CONTAINER) == []
    assert (outside / "secret").read_text() == "secret"


def test_deleting_a_folder_does_not_go_through_links(storage: Storage, zone: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (zone / CONTAINER / "job").mkdir()
    (zone / CONTAINER / "job" / "link").symlink_to(outside)
    (zone / CONTAINER / "job" / "file").write_text("goes")
    assert storage.sync.delete_prefix(Zone.BRONZE, CONTAINER, "job") == 1
    assert (outside / "kept").exists()


def test_a_link_inside_of_the_zone_is_followed(storage: Storage, zone: Path) -> None:
    (zone / CONTAINER / "real").write_bytes(b"1")
    (zone / CONTAINER / "link").symlink_to(zone / CONTAINER / "real")
    assert storage.sync.read(bronze("link")) == b"1"


def test_the_zone_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "bronze").symlink_to(tmp_path / "disk")
    storage = folder_storage(tmp_path / "data")
    storage.sync.put_bytes(bronze("x"), b"1")
    assert (tmp_path / "disk" / CONTAINER / "x").read_bytes() == b"1"


def test_what_has_an_unfit_name_is_not_listed(storage: Storage, zone: Path) -> None:
    for name in ("fine", "back\\slash", "dot.", "staged#1"):
        (zone / CONTAINER / name).write_bytes(b"")
    (zone / CONTAINER / "dangling").symlink_to("nowhere")
    assert [info.name.path for info in storage.sync.list(Zone.BRONZE, CONTAINER)] == ["fine"]


async def test_a_reader_sees_the_old_or_the_new(storage: Storage) -> None:
    """Under its name, a file is never half there."""
    wholes = [bytes([number]) * (PART + 1) for number in (1, 2)]
    await storage.put_bytes(bronze("x"), wholes[0])

    async def write() -> None:
        for number in range(10):
            await storage.put_bytes(bronze("x"), wholes[number % 2])

    writing = asyncio.create_task(write())
    path = Path(storage.gdal_path(bronze("x")))
    while not writing.done():
        assert await asyncio.to_thread(path.read_bytes) in wholes


def test_deleting_leaves_no_empty_folders(storage: Storage, zone: Path) -> None:
    storage.sync.put_bytes(bronze("a/b/c/x"), b"1")
    storage.sync.put_bytes(bronze("a/y"), b"1")
    storage.sync.delete_prefix(Zone.BRONZE, CONTAINER, "a/b")
    assert [path.name for path in (zone / CONTAINER / "a").iterdir()] == ["y"]


def test_writing_and_deleting_in_one_folder_do_not_disturb_each_other(storage: Storage) -> None:
    def work(number: int) -> None:
        for _ in range(40):
            storage.sync.put_bytes(bronze(f"a/{number % 2}/{number}"), b"1")
            storage.sync.delete(bronze(f"a/{number % 2}/{number}"))
            storage.sync.delete_prefix(Zone.BRONZE, CONTAINER, f"b/{number}")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))


def test_a_folder_where_an_object_should_be_is_told(storage: Storage) -> None:
    storage.sync.put_bytes(bronze("a/b"), b"1")
    with pytest.raises(StorageUnavailable, match="for 'bronze/rasters/a': "):
        storage.sync.put_bytes(bronze("a"), b"1")
    with pytest.raises(StorageUnavailable, match="'bronze/rasters/a/b/c'"):
        storage.sync.put_bytes(bronze("a/b/c"), b"1")
