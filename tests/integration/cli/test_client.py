"""The command line's own client against a real gateway over real HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from geomill.api import create_app
from geomill.cli import client as client_module
from geomill.cli import context, folder
from geomill.cli.gateway import listen
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.errors import Forbidden, InputError, NotFoundError, SettingsError, Unauthenticated, UnavailableError
from geomill.settings import AccessSettings, QueueSettings, Settings
from tests.integration.api.conftest import make_key
from tests.integration.engine.conftest import make_platform as make_platform
from tests.integration.engine.platform import EnginePlatform


@pytest.fixture
async def address(make_platform: Callable[..., EnginePlatform], database: str) -> AsyncIterator[str]:
    """Where a gateway listens."""
    app = create_app(database, make_platform().workflow_registry, QueueSettings(), AccessSettings())
    with listen("127.0.0.1", 0) as listener:
        async with serving(app, listener) as url:
            yield url


@asynccontextmanager
async def serving(app: Any, listener: Any) -> AsyncIterator[str]:
    """The address at which the app answers meanwhile."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"))
    server.config.load()
    server.capture_signals = _nothing  # type: ignore[method-assign]  # signals are the test runner's
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        server.should_exit = True
        await running


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    token = context.data_option.set(tmp_path)
    yield tmp_path
    context.data_option.reset(token)


async def call(method: str, path: str, **options: Any) -> Any:
    def work() -> Any:
        with client_module.gateway() as client:
            return client.connection.send(method, path, **options)

    return await asyncio.to_thread(work)


async def test_it_finds_the_gateway_of_the_data_folder(address: str, database: str, data: Path) -> None:
    folder.write_key(data, await make_key(database, Role.OPERATOR, name="shell"))
    with folder.published_address(data, address):
        accepted = await call("POST", "/api/v1/jobs", body={"workflow_id": "hello_world"})
        job = await call("GET", accepted["status_url"], params={"outputs": None})
        assert job["submitted_by"] == "key:shell"
        assert (await call("GET", "/api/v1/bootstrap/ddl")).startswith("-- The schema")


async def test_problem_documents_become_errors(address: str, database: str, data: Path) -> None:
    folder.write_key(data, await make_key(database, Role.OPERATOR))
    with folder.published_address(data, address):
        with pytest.raises(NotFoundError, match="did you mean 'hello_world'"):
            await call("POST", "/api/v1/jobs", body={"workflow_id": "helo_world"})
        with pytest.raises(InputError) as wrong:
            await call("POST", "/api/v1/jobs", body={"workflow_id": "hello_world", "inputs": {"nam": 1}})
        assert [str(problem) for problem in wrong.value.problems] == [
            "nam: there is no input 'nam' (did you mean 'name'?)"
        ]
        with pytest.raises(Forbidden, match="role admin"):
            await call("POST", "/api/v1/bootstrap/migrate")
        folder.write_key(data, Secret.new())
        with pytest.raises(Unauthenticated, match="the key does not exist"):
            await call("GET", "/health")


async def test_named_by_the_environment(
    address: str, database: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_key = await make_key(database, Role.READER)
    monkeypatch.setenv("GEOMILL_URL", address)
    folder.write_key(data, await make_key(database, Role.ADMIN))
    with pytest.raises(SettingsError, match=f"no key is set for the gateway {address}; set GEOMILL_KEY"):
        await call("GET", "/health")
    monkeypatch.setenv("GEOMILL_KEY", reader_key.reveal())
    assert await call("GET", "/health")
    with pytest.raises(Forbidden):
        await call("POST", "/api/v1/bootstrap/migrate")
    assert reader_key.reveal() not in repr(vars(Settings(os.environ)))


async def test_nobody_there(data: Path) -> None:
    remedy = "start 'geomill up', or set GEOMILL_URL and GEOMILL_KEY"
    with pytest.raises(UnavailableError, match=remedy):
        await call("GET", "/health")
    folder.write_key(data, Secret.new())
    with (
        folder.published_address(data, "http://127.0.0.1:1"),
        pytest.raises(UnavailableError, match=f"no gateway answers at http://127.0.0.1:1; {remedy}"),
    ):
        await call("GET", "/health")
