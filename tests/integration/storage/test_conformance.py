"""The behaviour that every store has."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import obstore
import pytest
from obstore.store import AzureStore, LocalStore

from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import ConflictError, InputError, InvalidName, NotFoundError
from geomill.storage import ObjectInfo, Storage
from geomill.storage.transfer import PART
from tests.integration.storage.conftest import CONTAINER, OTHER, bronze, silver

LARGE = 2 * PART + 12_345
NASTY = [
    "a b.tif", "x#y.tif", "p%20q.tif", "é/ü.tif", "日本/地図.tif", "a?b.tif", "a*b.tif", "a:b&c+d=e@f$g,h;i!j(k).tif",
    "~[1]{2}|<3>^\"'`.tif", ".hidden", "..a",
]  # fmt: skip


CONTENT = random.Random(1).randbytes(LARGE)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("source") / "large.bin"
    file.write_bytes(CONTENT)
    return file


def files(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if file.is_file()]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def listed(storage: Storage, zone: Zone = Zone.BRONZE, prefix: str = "") -> dict[str, int]:
    return {info.name.path: info.size async for info in storage.list(zone, CONTAINER, prefix)}


async def test_bytes_go_in_and_come_out(storage: Storage) -> None:
    stored = await storage.put_bytes(bronze("a/b.txt"), b"hello", media_type="text/plain")
    assert (stored.name, stored.size, stored.sha256) == (bronze("a/b.txt"), 5, sha256(b"hello"))
    assert await storage.read(bronze("a/b.txt")) == b"hello"


async def test_a_move_replaces_the_target_and_leaves_no_source(storage: Storage) -> None:
    await storage.put_bytes(bronze("aside/a"), b"new")
    await storage.put_bytes(bronze("b"), b"old")
    await storage.move(bronze("aside/a"), bronze("b"))
    await storage.put_bytes(bronze("aside/c"), CONTENT)
    await storage.move(bronze("aside/c"), silver("d"))
    assert (await storage.read(bronze("b")), await storage.read(silver("d"))) == (b"new", CONTENT)
    assert await listed(storage) == {"b": 3}
    with pytest.raises(NotFoundError):
        await storage.move(bronze("aside/a"), bronze("b"))
    assert await storage.read(bronze("b")) == b"new"


async def test_an_object_can_be_empty(storage: Storage, tmp_path: Path) -> None:
    await storage.put_bytes(bronze("empty"), b"")
    assert (await storage.stat(bronze("empty"))).size == 0
    assert await storage.read(bronze("empty")) == b""
    stored = await storage.get_file(bronze("empty"), tmp_path / "empty")
    assert ((tmp_path / "empty").read_bytes(), stored.sha256) == (b"", sha256(b""))


async def test_stat_tells_size_tag_and_time(storage: Storage) -> None:
    await storage.put_bytes(bronze("x"), b"one")
    first = await storage.stat(bronze("x"))
    assert (first.name, first.size) == (bronze("x"), 3)
    assert abs(datetime.now(UTC) - first.modified) < timedelta(minutes=1)
    await storage.put_bytes(bronze("x"), b"other")
    second = await storage.stat(bronze("x"))
    assert second.size == 5
    assert second.etag != first.etag


async def test_what_is_not_there_is_not_found(storage: Storage, tmp_path: Path) -> None:
    assert not await storage.exists(bronze("no/where"))
    for work in (
        storage.stat(bronze("no/where")),
        storage.read(bronze("no/where")),
        storage.get_file(bronze("no/where"), tmp_path / "x"),
        storage.copy(bronze("no/where"), bronze("x")),
    ):
        with pytest.raises(NotFoundError, match="there is no object 'bronze/rasters/no/where'"):
            await work
    assert files(tmp_path) == []


async def test_a_folder_is_no_object(storage: Storage) -> None:
    await storage.put_bytes(bronze("a/b"), b"1")
    assert not await storage.exists(bronze("a"))


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 4, b"0123"), (3, 4, b"3456"), (8, 100, b"89"), (3, None, b"3456789"), (10, 1, b""), (99, None, b""),
     (2, 0, b"")]
)  # fmt: skip
async def test_ranges(storage: Storage, start: int, length: int | None, expected: bytes) -> None:
    await storage.put_bytes(bronze("digits"), b"0123456789")
    assert await storage.read(bronze("digits"), start, length) == expected


async def test_a_range_is_not_negative(storage: Storage) -> None:
    with pytest.raises(InputError, match="must not be negative"):
        await storage.read(bronze("digits"), -1)


async def test_create_only_if_absent(storage: Storage) -> None:
    await storage.put_bytes(bronze("once"), b"first", if_absent=True)
    with pytest.raises(ConflictError, match="there is already an object 'bronze/rasters/once'"):
        await storage.put_bytes(bronze("once"), b"second", if_absent=True)
    assert await storage.read(bronze("once")) == b"first"


@pytest.mark.parametrize("recipe", ["folder", "azure"], indirect=True)
async def test_of_many_that_create_at_once_one_succeeds(storage: Storage) -> None:
    """Not on moto, which looks and then writes; S3 itself is atomic."""
    works = [storage.put_bytes(bronze("race"), b"%d" % n, if_absent=True) for n in range(8)]
    ended = await asyncio.gather(*works, return_exceptions=True)
    assert sum(isinstance(outcome, ConflictError) for outcome in ended) == 7
    winner = next(number for number, outcome in enumerate(ended) if not isinstance(outcome, BaseException))
    assert await storage.read(bronze("race")) == b"%d" % winner


async def test_a_large_file_there_and_back(storage: Storage, large: Path, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    stored = await storage.put_file(
        silver("big/large.bin"), large, progress=lambda *at: progress.append(at), media_type="image/tiff"
    )
    assert (stored.size, stored.sha256) == (LARGE, sha256(CONTENT))
    assert progress[-1] == (LARGE, LARGE)
    assert len(progress) == 3
    assert progress == sorted(progress)
    target = tmp_path / "new" / "back.bin"
    got = await storage.get_file(silver("big/large.bin"), target, progress=lambda *at: progress.append(at))
    assert (got.size, got.sha256) == (stored.size, stored.sha256)
    assert target.read_bytes() == CONTENT
    assert progress[-1] == (LARGE, LARGE)
    assert files(target.parent) == ["back.bin"]


async def test_a_stream_in_parts(storage: Storage, large: Path) -> None:
    await storage.put_file(silver("large.bin"), large)
    parts = [part async for part in storage.stream(silver("large.bin"), start=100)]
    assert len(parts) == 3
    assert b"".join(parts) == CONTENT[100:]


async def test_a_download_that_broke_off_goes_on(storage: Storage, large: Path, tmp_path: Path) -> None:
    await storage.put_file(silver("large.bin"), large)
    target = tmp_path / "target"

    def break_off(done: int, total: int) -> None:
        if done >= PART:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        await storage.get_file(silver("large.bin"), target, progress=break_off)
    assert not target.exists()
    progress: list[int] = []
    got = await storage.get_file(silver("large.bin"), target, progress=lambda done, _: progress.append(done))
    assert progress[0] == PART
    assert got.sha256 == sha256(CONTENT) == sha256(target.read_bytes())


async def test_a_download_of_something_replaced_starts_anew(storage: Storage, tmp_path: Path) -> None:
    await storage.put_bytes(silver("x"), b"old " * 3_000_000)

    def break_off(done: int, total: int) -> None:
        if done:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError):
        await storage.get_file(silver("x"), tmp_path / "x", progress=break_off)
    await storage.put_bytes(silver("x"), b"new " * 3_000_000)
    await storage.get_file(silver("x"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"new " * 3_000_000


async def test_an_object_that_is_replaced_under_a_stream_is_noticed(storage: Storage, large: Path) -> None:
    await storage.put_bytes(silver("x"), b"1" * (PART * 6))
    stream = storage.stream(silver("x"))
    await anext(stream)
    await storage.put_bytes(silver("x"), b"2" * (PART * 6))
    with pytest.raises(ConflictError, match="was changed meanwhile"):
        await rest(stream)


async def rest(stream: AsyncIterator[bytes]) -> None:
    async for part in stream:
        assert set(part) == {ord("1")}


async def test_other_bytes_than_expected_are_refused(storage: Storage, tmp_path: Path) -> None:
    await storage.put_bytes(bronze("x"), b"right")
    await storage.get_file(bronze("x"), tmp_path / "x", sha256=sha256(b"right"))
    with pytest.raises(ConflictError, match=r"has the SHA-256 .*, not"):
        await storage.get_file(bronze("x"), tmp_path / "y", sha256=sha256(b"wrong"))
    assert files(tmp_path) == ["x"]


async def test_names_are_kept_as_they_are(storage: Storage) -> None:
    for number, path in enumerate(NASTY):
        await storage.put_bytes(bronze(path), b"%d" % number)
    assert set(await listed(storage)) == set(NASTY)
    for number, path in enumerate(NASTY):
        assert await storage.read(bronze(path)) == b"%d" % number
        await storage.copy(bronze(path), silver(path))
    assert set(await listed(storage, Zone.SILVER)) == set(NASTY)
    for path in NASTY:
        await storage.delete(bronze(path))
    assert await listed(storage) == {}


async def put_all(storage: Storage, paths: Iterable[str]) -> None:
    await asyncio.gather(*(storage.put_bytes(bronze(path), b"x") for path in paths))


async def test_listing_is_by_folders(storage: Storage) -> None:
    await put_all(storage, ["a/b/1", "a/b/2", "a/bc/3", "a/b.tif", "z"])
    assert set(await listed(storage)) == {"a/b/1", "a/b/2", "a/bc/3", "a/b.tif", "z"}
    assert set(await listed(storage, prefix="a/b")) == set(await listed(storage, prefix="a/b/")) == {"a/b/1", "a/b/2"}
    assert await listed(storage, prefix="nothing") == {}
    assert await listed(storage, Zone.SILVER) == {}


async def test_containers_are_apart(storage: Storage) -> None:
    await storage.put_bytes(bronze("x"), b"1")
    assert not await storage.exists(ObjectName(Zone.BRONZE, OTHER, "x"))
    info = await storage.copy(bronze("x"), ObjectName(Zone.BRONZE, OTHER, "x"))
    assert (info.name.container, info.size) == (OTHER, 1)


async def test_a_prefix_is_deleted_and_its_neighbours_are_not(storage: Storage) -> None:
    many = [f"job/tiles/{number}" for number in range(300)]
    await put_all(storage, [*many, "job/tiles-2/x", "job/tiles.json", "other"])
    assert await storage.delete_prefix(Zone.BRONZE, CONTAINER, "job/tiles/") == 300
    assert set(await listed(storage)) == {"job/tiles-2/x", "job/tiles.json", "other"}
    assert await storage.delete_prefix(Zone.BRONZE, CONTAINER, "job/tiles") == 0


@pytest.mark.parametrize("prefix", ["", "/", "../x"])
async def test_a_whole_container_is_not_deleted_by_accident(storage: Storage, prefix: str) -> None:
    with pytest.raises(InvalidName, match="prefix"):
        await storage.delete_prefix(Zone.BRONZE, CONTAINER, prefix)


async def test_deleting_twice_is_deleting_once(storage: Storage) -> None:
    await storage.put_bytes(bronze("x"), b"1")
    await storage.delete(bronze("x"))
    await storage.delete(bronze("x"))
    assert not await storage.exists(bronze("x"))


async def test_a_copy_inside_of_a_store(storage: Storage, large: Path) -> None:
    await storage.put_file(bronze("large.bin"), large)
    info = await storage.copy(bronze("large.bin"), bronze("copies/large.bin"))
    assert info == await storage.stat(bronze("copies/large.bin"))
    assert await storage.read(bronze("copies/large.bin"), PART, 1000) == CONTENT[PART : PART + 1000]
    await storage.put_bytes(bronze("large.bin"), b"changed")
    assert (await storage.stat(bronze("copies/large.bin"))).size == LARGE


async def test_a_copy_from_store_to_store(mixed: Storage, large: Path) -> None:
    external = ObjectName(Zone.EXTERNAL, CONTAINER, "large.bin")
    await mixed.put_file(bronze("large.bin"), large)
    progress: list[int] = []
    await mixed.copy(bronze("large.bin"), silver("large.bin"), progress=lambda done, _: progress.append(done))
    assert progress[-1] == LARGE
    info: ObjectInfo = await mixed.copy(silver("large.bin"), external)
    assert info.size == LARGE
    assert await mixed.read(external) == CONTENT


async def test_a_missing_source_file_is_named(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no file .*nothing.tif"):
        await storage.put_file(bronze("x"), tmp_path / "nothing.tif")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        await storage.put_file(bronze("x"), tmp_path)


def test_the_same_for_code_that_waits(storage: Storage, large: Path, tmp_path: Path) -> None:
    sync = storage.sync
    sync.put_file(silver("large.bin"), large)
    sync.put_bytes(silver("small"), b"0123")
    assert sync.read(silver("small"), 1, 2) == b"12"
    assert [info.name.path for info in sync.list(Zone.SILVER, CONTAINER, "")] == ["large.bin", "small"]
    assert sync.get_file(silver("large.bin"), tmp_path / "x").sha256 == sha256(CONTENT)
    assert sync.copy(silver("small"), silver("small-2")).size == sync.stat(silver("small-2")).size == 4
    sync.delete(silver("small"))
    assert not sync.exists(silver("small"))
    assert sync.delete_prefix(Zone.SILVER, CONTAINER, "none") == 0


async def test_code_that_waits_does_not_stop_a_loop(storage: Storage) -> None:
    with pytest.raises(RuntimeError, match="await the method of the storage itself"):
        storage.sync.exists(bronze("x"))


async def test_the_probe_says_where_it_looked_and_leaves_nothing(storage: Storage) -> None:
    assert (await asyncio.to_thread(storage.sync.probe, Zone.BRONZE)).startswith(storage.recipe.zones["bronze"] + ", ")
    assert [entry async for entry in storage.list(Zone.BRONZE, OTHER)] == []


async def test_cancelling_an_upload_leaves_nothing(storage: Storage, large: Path) -> None:
    begun = asyncio.Event()
    upload = asyncio.create_task(storage.put_file(silver("x"), large, progress=lambda *_: begun.set()))
    await begun.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert not await storage.exists(silver("x"))
    assert await listed(storage, Zone.SILVER) == {}


def test_what_is_cool_goes_to_the_cheaper_class(storage: Storage, large: Path) -> None:
    """A folder has no storage classes and accepts the option."""
    waiting = storage.sync
    small, big, warm = silver("cool.bin"), silver("cool-large.bin"), silver("warm.bin")
    waiting.put_bytes(small, b"x", media_type="text/plain", cool=True)
    waiting.put_file(big, large, cool=True)
    waiting.put_bytes(warm, b"x", media_type="text/plain")
    shelf = waiting._place(small)[0]
    classes = [_class(shelf.store, waiting._place(name)[1]) for name in (small, big, warm)]
    cool = {"AzureAccount": "Cool", "S3Bucket": "STANDARD_IA"}.get(type(shelf.location).__name__)
    assert classes[:2] == [cool, cool]
    assert classes[2] in (None, "Hot")


def _class(store: Any, key: str) -> str | None:
    """Return the storage class that the server reports. obstore does not show it."""
    if isinstance(store, LocalStore):
        return None
    url = obstore.sign(store, "GET", key, timedelta(minutes=5))
    headers = httpx.request("HEAD" if isinstance(store, AzureStore) else "GET", url).headers
    return headers.get("x-ms-access-tier") or headers.get("x-amz-storage-class")
