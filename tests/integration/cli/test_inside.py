"""A gateway inside the process of a command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI

from geomill.cli import context
from geomill.cli.client import gateway_or_database
from geomill.cli.inside import InsideTransport
from geomill.contract.jobs import JobSubmission
from geomill.contract.uploads import UploadView
from geomill.errors import NotFoundError
from tests.integration.engine.conftest import make_platform as make_platform
from tests.integration.engine.platform import EnginePlatform


@pytest.fixture
def settings(database: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GEOMILL_DATABASE_URL", database)
    token = context.data_option.set(tmp_path)
    yield
    context.data_option.reset(token)


async def test_a_command_without_a_server_calls_the_same_routes(
    settings: None, make_platform: Callable[..., EnginePlatform]
) -> None:
    platform = make_platform()
    platform.orchestrator()
    platform.worker()

    def work() -> tuple[Any, list[str]]:
        with gateway_or_database() as client:
            accepted = client.jobs.submit(JobSubmission(workflow_id="hello_world", input_params={"name": "Ada"}))
            events = [event.event for event in client.jobs.follow(accepted.job_id)]
            with pytest.raises(NotFoundError):
                client.jobs.get("absent")
            return client.jobs.get(accepted.job_id), events

    job, events = await asyncio.to_thread(work)
    assert (job.status, job.result) == ("completed", {"message": "Hello, Ada!"})
    assert job.submitted_by.startswith("user:")
    assert events[-1] == "end"


async def test_a_command_without_a_server_uploads(settings: None, tmp_path: Path) -> None:
    file = tmp_path / "a.tif"
    file.write_bytes(bytes(3_000_000))

    def work() -> UploadView:
        with gateway_or_database() as client:
            return client.upload(file, platform_id="ddh")

    upload = await asyncio.to_thread(work)
    assert (tmp_path / "bronze" / "ddh" / upload.file_name).read_bytes() == file.read_bytes()


async def breaks(scope: Any, receive: Any, send: Any) -> None:
    raise RuntimeError("broken")


async def ends(scope: Any, receive: Any, send: Any) -> None:
    await receive()


@pytest.mark.parametrize(("app", "error"), [(breaks, RuntimeError), (ends, httpx.RemoteProtocolError)])
def test_an_application_that_does_not_answer_is_an_error(app: Any, error: type[Exception]) -> None:
    with (
        start_blocking_portal() as portal,
        httpx.Client(transport=InsideTransport(app, portal), base_url="http://localhost") as client,
        pytest.raises(error),
    ):
        client.get("/")


def test_an_answer_that_nobody_reads_to_its_end_is_given_up() -> None:
    from fastapi.responses import StreamingResponse

    app = FastAPI()
    ended: list[bool] = []

    @app.get("/endless")
    async def endless() -> StreamingResponse:
        async def pieces() -> Any:
            try:
                while True:
                    yield b"more"
                    await asyncio.sleep(0.01)
            finally:
                ended.append(True)

        return StreamingResponse(pieces())

    with (
        start_blocking_portal() as portal,
        httpx.Client(transport=InsideTransport(app, portal), base_url="http://localhost") as client,
    ):
        with client.stream("GET", "/endless") as answer:
            assert next(answer.iter_bytes()) == b"more"
        assert client.get("/absent").status_code == 404
    assert ended == [True]
