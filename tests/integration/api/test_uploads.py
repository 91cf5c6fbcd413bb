"""Uploads by the tus protocol: bytes in, a file under its name, and nothing before."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import Response

from geomill.api import tus
from geomill.client.files import metadata
from geomill.domain.access.principal import Role
from geomill.domain.objectname import ObjectName, Zone
from geomill.settings import UploadSettings
from geomill.storage import drafts
from tests.integration.api.desk import TIFF, Counter, order

UPLOADS = "/api/platform/uploads"
CONTENT = bytes(range(256)) * 40


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Sender:
    """Speaks tus to a gateway, as the submitter of a platform."""

    def __init__(self, counter: Counter, key: dict[str, str]) -> None:
        self.counter, self.key = counter, key

    async def call(
        self, method: str, path: str, headers: dict[str, str] | None = None, content: Any = None
    ) -> Response:
        return await self.counter.client.request(
            method, path, headers={"Tus-Resumable": "1.0.0", **self.key, **(headers or {})}, content=content
        )

    async def begin(self, length: int = len(CONTENT), content: bytes | None = None, **more: str) -> Response:
        headers = {"Upload-Length": str(length), "Upload-Metadata": metadata({"filename": "a.tif", **more})}
        if content is not None:
            headers["Content-Type"] = tus.BYTES
        return await self.call("POST", UPLOADS, headers, content)

    async def begun(self, length: int = len(CONTENT), **more: str) -> str:
        answer = await self.begin(length, **more)
        assert answer.status_code == 201, answer.text
        return answer.headers["location"]

    async def send(self, path: str, offset: int, content: Any, **headers: str) -> Response:
        return await self.call(
            "PATCH", path, {"Upload-Offset": str(offset), "Content-Type": tus.BYTES, **headers}, content
        )

    async def offset(self, path: str) -> int:
        answer = await self.call("HEAD", path)
        assert answer.status_code == 200
        return int(answer.headers["upload-offset"])

    async def view(self, path: str) -> dict[str, Any]:
        body: dict[str, Any] = (await self.call("GET", path)).json()
        return body


@pytest.fixture
async def counter(make_counter: Any) -> Counter:
    made: Counter = await make_counter()
    return made


@pytest.fixture
async def sender(counter: Counter) -> Sender:
    return Sender(counter, await counter.key(Role.SUBMITTER, platform_id="ddh"))


async def stored(counter: Counter, view: dict[str, Any]) -> bytes:
    return await counter.storage.read(ObjectName(Zone.BRONZE, view["container_name"], view["file_name"]))


async def files(counter: Counter) -> list[str]:
    return [info.name.path async for info in counter.storage.list(Zone.BRONZE, "ddh")]


async def test_the_server_tells_what_it_can(counter: Counter) -> None:
    answer = await counter.client.options(UPLOADS)
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == answer.headers["tus-resumable"] == "1.0.0"
    assert "sha1" in answer.headers["tus-checksum-algorithm"]
    assert answer.headers["tus-extension"] == "creation,creation-with-upload,checksum,termination,expiration"


async def test_a_file_appears_when_it_is_whole(counter: Counter, sender: Sender) -> None:
    path = await sender.begun(sha256=sha256(CONTENT))
    assert (await sender.send(path, 0, CONTENT[:1000])).headers["upload-offset"] == "1000"
    assert await sender.offset(path) == 1000
    assert await files(counter) == []
    answer = await sender.send(path, 1000, CONTENT[1000:])
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(len(CONTENT)))
    view = await sender.view(path)
    assert (view["status"], view["sha256"], view["expires_at"]) == ("complete", sha256(CONTENT), None)
    assert await stored(counter, view) == CONTENT
    assert view["container_name"] == "ddh"
    assert await sender.offset(path) == len(CONTENT)


async def test_a_file_is_submitted_as_the_upload_names_it(counter: Counter, sender: Sender) -> None:
    path = (await sender.begin(len(TIFF), TIFF)).headers["location"]
    view = await sender.view(path)
    body = order(container_name=view["container_name"], file_name=view["file_name"])
    assert (await counter.post("submit", body, by=sender.key)).status_code == 202
    refused = await sender.call("DELETE", path)
    assert refused.status_code == 409, "a request under way needs the file"


async def test_creation_may_bring_bytes(counter: Counter, sender: Sender) -> None:
    answer = await sender.begin(len(CONTENT), CONTENT[:10])
    assert (answer.status_code, answer.headers["upload-offset"]) == (201, "10")
    empty = await sender.view((await sender.begin(0)).headers["location"])
    assert (empty["status"], await stored(counter, empty)) == ("complete", b"")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Upload-Offset": "5"}, 409),
        ({"Upload-Offset": "x"}, 422),
        ({"Content-Type": "text/plain"}, 415),
        ({"Tus-Resumable": "0.2"}, 412),
        ({"Upload-Checksum": "md5 AAAA"}, 400),
        ({"Upload-Checksum": "sha1 ?"}, 400),
    ],
)
async def test_a_wrong_header_is_refused(sender: Sender, change: dict[str, str], status: int) -> None:
    path = await sender.begun()
    answer = await sender.send(path, 0, CONTENT, **change)
    assert (answer.status_code, answer.headers["tus-resumable"]) == (status, "1.0.0")
    assert await sender.offset(path) == 0


async def test_bytes_with_a_wrong_checksum_do_not_count(counter: Counter, sender: Sender) -> None:
    path = await sender.begun()
    digest = base64.b64encode(hashlib.sha1(CONTENT, usedforsecurity=False).digest()).decode()
    damaged = await sender.send(path, 0, CONTENT[:-1] + b"?", **{"Upload-Checksum": f"sha1 {digest}"})
    assert damaged.status_code == 460
    assert (await sender.offset(path), await files(counter)) == (0, [])
    assert (await sender.send(path, 0, CONTENT, **{"Upload-Checksum": f"sha1 {digest}"})).status_code == 204


async def test_a_file_with_a_wrong_checksum_never_appears(counter: Counter, sender: Sender) -> None:
    path = await sender.begun(sha256=sha256(b"something else"))
    answer = await sender.send(path, 0, CONTENT)
    assert (answer.status_code, answer.json()["code"]) == (460, "checksum_mismatch")
    assert await files(counter) == []
    assert (await sender.call("HEAD", path)).status_code == 410
    assert (await sender.send(path, 0, CONTENT)).status_code == 410
    assert "SHA-256" in (await sender.view(path))["error"]
    assert not list((await drafts_folder(counter)).iterdir())


async def drafts_folder(counter: Counter) -> Any:
    from pathlib import Path

    return Path(counter.storage.recipe.zones["bronze"]) / drafts.DRAFTS


async def test_more_bytes_than_announced_are_refused(sender: Sender) -> None:
    path = await sender.begun(10)
    assert (await sender.send(path, 0, b"x" * 11)).status_code == 413
    assert await sender.offset(path) == 0


@pytest.mark.parametrize("file_name", ["", "../a.tif", "a/b.tif", "a\n.tif", "x" * 300, "a.tif ", "..", "a\\b"])
async def test_names_are_checked(sender: Sender, file_name: str) -> None:
    answer = await sender.begin(filename=file_name)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "filename")


@pytest.mark.parametrize("folder", ["../other", "/etc", "a//b", "a/../../b", "\x00", ".geomill-drafts/x"])
async def test_folders_are_checked(sender: Sender, folder: str) -> None:
    assert (await sender.begin(folder=folder)).status_code == 422


async def test_files_of_a_folder_have_names_of_their_own(counter: Counter, sender: Sender) -> None:
    first = await sender.begun(3, folder="set")
    assert (await sender.begin(3, folder="set")).status_code == 409
    await sender.send(first, 0, b"abc")
    assert await files(counter) == ["set/a.tif"]
    assert (await sender.begin(3, folder="set")).status_code == 409
    assert (await sender.call("DELETE", first)).status_code == 204
    assert (await files(counter), (await sender.call("HEAD", first)).status_code) == ([], 404)
    assert (await sender.begin(3, folder="set")).status_code == 201


async def test_another_platform_finds_nothing(counter: Counter, sender: Sender) -> None:
    path = await sender.begun()
    stranger = Sender(counter, await counter.key(Role.SUBMITTER, platform_id="arcgis"))
    for answer in (
        await stranger.call("HEAD", path),
        await stranger.call("GET", path),
        await stranger.send(path, 0, CONTENT),
        await stranger.call("DELETE", path),
    ):
        assert answer.status_code == 404
    assert (await stranger.begin(platform_id="ddh")).status_code == 403
    assert (await stranger.call("GET", UPLOADS)).json()["uploads"] == []
    assert (await stranger.call("GET", f"{UPLOADS}?platform_id=ddh")).status_code == 403
    reader = Sender(counter, await counter.key(Role.READER))
    assert (await reader.call("GET", path)).status_code == 403
    assert (await sender.call("GET", UPLOADS)).json()["uploads"][0]["upload_id"] in path


async def test_an_operator_names_the_platform_and_is_audited(counter: Counter, sender: Sender) -> None:
    operator = Sender(counter, await counter.key(Role.OPERATOR))
    assert (await operator.begin()).status_code == 422
    assert (await operator.begin(platform_id="nobody")).status_code == 404
    assert (await operator.begin(platform_id="a\x00")).status_code == 422
    path = await operator.begun(platform_id="ddh")
    assert (await sender.call("HEAD", path)).status_code == 200
    assert (await operator.call("DELETE", path)).status_code == 204
    (entry,) = (await operator.call("GET", "/api/v1/audit?action=upload_removed")).json()["entries"]
    assert entry["target"] in path


async def test_limits_of_a_platform(make_counter: Any) -> None:
    limits = UploadSettings(upload_max_bytes=1000, upload_open_most=2, upload_open_bytes=1500)
    counter = await make_counter(upload_settings=limits)
    sender = Sender(counter, await counter.key(Role.SUBMITTER, platform_id="ddh"))
    assert (await sender.begin(1001)).status_code == 413
    assert (await sender.begin(1000)).status_code == 201
    assert (await sender.begin(501)).status_code == 413
    assert (await sender.begin(500)).status_code == 201
    refused = await sender.begin(0)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    other = Sender(counter, await counter.key(Role.SUBMITTER, platform_id="arcgis"))
    assert (await other.begin(1000)).status_code == 201
    big = await sender.call("PATCH", "/api/platform/uploads/x", {"Content-Type": tus.BYTES}, b"x" * 1001)
    assert big.status_code == 413


async def test_two_senders_at_once(sender: Sender) -> None:
    path = await sender.begun()
    first_sent, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield CONTENT[:100]
        first_sent.set()
        await go_on.wait()
        yield CONTENT[100:]

    async with asyncio.TaskGroup() as tasks:
        slow = tasks.create_task(sender.send(path, 0, slowly()))
        await first_sent.wait()
        second = await sender.send(path, 0, CONTENT)
        assert (second.status_code, second.json()["code"]) == (423, "upload_locked")
        assert (await sender.call("DELETE", path)).status_code == 423
        go_on.set()
    assert slow.result().status_code == 204
    assert (await sender.view(path))["sha256"] == sha256(CONTENT)


async def test_a_full_disk_keeps_what_is_there(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await sender.begun()
    await sender.send(path, 0, CONTENT[:100])
    with monkeypatch.context() as patch:
        patch.setattr(drafts, "RESERVED_BYTES", 10**18)  # no disk has that much left
        answer = await sender.send(path, 100, CONTENT[100:])
        assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
        assert (await sender.begin(1)).status_code == 507
    assert await sender.offset(path) == 100
    assert (await sender.send(path, 100, CONTENT[100:])).status_code == 204
