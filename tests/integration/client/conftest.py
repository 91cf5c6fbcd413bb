"""A gateway behind a real socket, with an orchestrator and a worker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from geomill.api import create_app
from geomill.api.app import FastAPI
from geomill.client import AsyncClient
from geomill.domain.access.principal import Role
from geomill.domain.objectname import ObjectName, Zone
from geomill.settings import AccessSettings, QueueSettings
from geomill.storage import Storage, StorageRecipe
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.conftest import SLOW, make_key
from tests.integration.api.desk import TIFF
from tests.integration.engine.conftest import make_platform as make_platform
from tests.integration.engine.platform import EnginePlatform, registry_of


@dataclass
class RunningGateway:
    """A gateway that can be stopped and started again on its port."""

    make_app: Callable[[], FastAPI]
    key: str
    database: str
    port: int = 0
    _server: uvicorn.Server | None = None
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        app = self.make_app()
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1))
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:  # noqa: ASYNC110  uvicorn has no event
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        if self._server and self._task:
            self._server.should_exit = True
            await self._task
            self._server = None

    async def key_of(self, *roles: Role, **options: Any) -> str:
        return (await make_key(self.database, *roles, **options)).reveal()


@pytest.fixture
async def gateway(
    make_platform: Callable[..., EnginePlatform], database: str, tmp_path: Path
) -> AsyncIterator[RunningGateway]:
    platform = make_platform()
    platform.workflow_registry = WorkflowRegistry(
        [*platform.workflow_registry.all(), *registry_of(platform.registry, SLOW).all()]
    )
    platform.storage = Storage(StorageRecipe.in_folder(tmp_path))
    await platform.storage.prepare()
    await platform.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF)
    platform.orchestrator()
    platform.worker()

    def make_app() -> FastAPI:
        return create_app(
            database, platform.workflow_registry, QueueSettings(), AccessSettings(), storage=platform.storage
        )

    secret = await make_key(database, Role.ADMIN, name="root")
    running = RunningGateway(make_app, secret.reveal(), database)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(gateway.url, gateway.key) as client:
        yield client
