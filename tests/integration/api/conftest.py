from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient

from geomill.api import create_app, jwks
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.settings import AccessSettings, QueueSettings
from geomill.storage import Storage, StorageRecipe
from geomill.store import keys
from geomill.store.pool import open_pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.issuer import Issuer
from tests.integration.engine.conftest import make_platform as make_platform
from tests.integration.engine.platform import EnginePlatform, registry_of

BASE = "http://127.0.0.1:8000"
SLOW = """
workflow_id: slow
name: Slow
inputs: {seconds: {type: number, default: 30}}
nodes:
  START: {type: start, next: nap}
  nap: {type: task, handler: sleep, params: {duration_seconds: "{{ inputs.seconds }}"}, next: END}
  END: {type: end}
"""


async def make_key(url: str, *roles: Role, **options: Any) -> Secret:
    """A key in the database, and the secret that goes with it."""
    secret = Secret.new()
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        name = options.pop("name", secret.key_id)
        await keys.create(conn, secret, name=name, roles=roles, created_by="a test", **options)
    return secret


def bearing(secret: Secret | str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret if isinstance(secret, str) else secret.reveal()}"}


@asynccontextmanager
async def client_of(
    url: str, platform: EnginePlatform, *, access: AccessSettings | None = None, **options: Any
) -> AsyncIterator[AsyncClient]:
    """A client without a credential."""
    options = {"handlers": platform.registry, **options}
    app = create_app(url, platform.workflow_registry, QueueSettings(), access or AccessSettings(), **options)
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


@pytest.fixture
async def make_client(database: str) -> AsyncIterator[Callable[..., Any]]:
    """`await make_client(platform)`: a gateway of that platform, called by an administrator."""
    async with AsyncExitStack() as stack:

        async def make(platform: EnginePlatform, **options: Any) -> AsyncClient:
            client = await stack.enter_async_context(client_of(database, platform, **options))
            client.headers.update(bearing(await make_key(database, Role.ADMIN)))
            return client

        yield make


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    monkeypatch.setattr(jwks, "PATIENCE_SECONDS", 60.0)  # on a busy machine even a thread of ours answers late
    with Issuer() as fake_issuer:
        yield fake_issuer


@pytest.fixture
async def idle(make_platform: Callable[..., EnginePlatform], make_client: Any) -> AsyncClient:
    """A gateway without orchestrators and workers: what is submitted stays queued."""
    return await make_client(make_platform())


@pytest.fixture
async def busy(make_platform: Callable[..., EnginePlatform], make_client: Any) -> AsyncClient:
    """A gateway with one of each."""
    platform = make_platform()
    platform.orchestrator()
    platform.worker()
    return await make_client(platform)


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await look():  # noqa: ASYNC110  what is looked at is in another process
            await asyncio.sleep(0.05)


async def ready(client: AsyncClient) -> bool:
    return (await client.get("/health/ready")).status_code == 200


@pytest.fixture
async def make_counter(
    make_platform: Callable[..., EnginePlatform], database: str, tmp_path: Path
) -> AsyncIterator[Any]:
    """`await make_counter(busy=True)`: a front desk with a store, and an engine that works or does not."""
    from tests.integration.api.desk import FAILING, TIFF, Counter

    async with AsyncExitStack() as stack:

        async def make(*, busy: bool = False, **options: Any) -> Counter:
            engine = make_platform()
            engine.workflow_registry = WorkflowRegistry(
                [*engine.workflow_registry.all(), *registry_of(engine.registry, FAILING).all()]
            )
            engine.storage = Storage(StorageRecipe.in_folder(tmp_path))
            await engine.storage.prepare()
            if busy:
                engine.orchestrator()
                engine.worker()
            client = await stack.enter_async_context(client_of(database, engine, storage=engine.storage, **options))
            client.headers.update(bearing(await make_key(database, Role.ADMIN, name="root")))
            counter = Counter(client, engine.storage, engine, database)
            await counter.put("a.tif", TIFF)
            return counter

        yield make
