"""A gateway inside the process of a command, for the time of the command.

Whoever has the database needs no server to look at queues or to make a key. The command calls the same routes as it
would over the network, so there is one way to do a thing. The caller is an administrator: it holds the database.
"""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import httpx
from anyio import sleep_forever, to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from geomill.cli import context
from geomill.client import Client
from geomill.domain.access.principal import Principal, Role

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from geomill.sdk.registry import Registry
    from geomill.stages.registry import StageJobs
    from geomill.workflows.registry import WorkflowRegistry

URL = "http://localhost"


@dataclass(frozen=True)
class LoadedParts:
    """The parts of a gateway that take time to load."""

    registry: Registry
    job_types: StageJobs
    workflow_registry: WorkflowRegistry


def load() -> LoadedParts:
    """Load handlers, stage jobs and workflows. Raises if one of them is invalid."""
    registry, job_types = context.handlers(), context.stage_jobs()
    return LoadedParts(registry, job_types, context.workflow_registry(registry, job_types))


@contextmanager
def inside(parts: LoadedParts | None = None, *, with_roles: bool = False) -> Iterator[Client]:
    """Open a client of a gateway that runs in a thread of this process. With `with_roles`, an orchestrator and a worker
    run there too, if none run elsewhere.

    All that takes time is loaded before the database is asked for. Another command that ends would otherwise stop a
    private server that nobody seems to use.
    """
    from geomill.api.app import create_app
    from geomill.settings import gateway_settings

    loaded, settings = parts or load(), context.settings()
    with start_blocking_portal() as portal, context.ready_database() as url, ExitStack() as stack:
        app = create_app(
            url,
            loaded.workflow_registry,
            settings.queue,
            settings.access,
            settings.platform,
            storage=context.storage(),
            job_types=loaded.job_types,
            handlers=loaded.registry,
            inspection_settings=settings.inspection,
            settings=gateway_settings(settings),
            pool_size=2,
            authenticator=OwnerAuthenticator(),
            upload_settings=settings.upload,
            retention=settings.retention,
        )
        stack.enter_context(portal.wrap_async_context_manager(_running(app)))
        if with_roles:
            stack.enter_context(portal.wrap_async_context_manager(_roles(url, loaded)))
        yield stack.enter_context(Client(URL, "inside", transport=InsideTransport(app, portal)))


@asynccontextmanager
async def _roles(url: str, loaded: LoadedParts) -> AsyncIterator[None]:
    from geomill.cli.local import local_roles
    from geomill.store.pool import open_pool

    settings, loader_url = context.settings(), context.loader_database_url()
    async with (
        open_pool(url, size=6, hot=True) as pool,
        local_roles(
            url, pool, settings.queue, loaded.workflow_registry, loaded.registry, context.storage(), loader_url
        ),
    ):
        yield


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[FastAPI]:
    async with app.router.lifespan_context(app):
        yield app


class OwnerAuthenticator:
    """Takes every caller for the user of this process. Only for a gateway that nobody else can reach."""

    def __init__(self) -> None:
        self._principal = Principal(subject=f"user:{_user()}", roles=frozenset({Role.ADMIN}), platform_id=None)

    async def principal(self, credential: str, address: str) -> Principal:  # noqa: ARG002  the interface of others
        return self._principal

    @asynccontextmanager
    async def noting(self) -> AsyncIterator[None]:
        yield


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return "command line"


class InsideTransport(httpx.BaseTransport):
    """Calls an ASGI application in another thread of this process. Answers arrive piece by piece, so streams work."""

    def __init__(self, app: ASGIApp, portal: BlockingPortal) -> None:
        self._app, self._portal = app, portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _Exchange(iter(cast("httpx.SyncByteStream", request.stream)))
        future = self._portal.start_task_soon(partial(self._app, _scope(request), exchange.receive, exchange.send))
        future.add_done_callback(exchange.end)
        head = exchange.sent.get()
        if head is None:
            future.result()  # raises the error of the application
            raise httpx.RemoteProtocolError("the gateway ended without an answer")
        return httpx.Response(head["status"], headers=head["headers"], stream=_Body(exchange, future))


def _scope(request: httpx.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, 80),
        "client": ("127.0.0.1", 0),
    }


class _Exchange:
    """One request and its answer. `sent` holds the messages of the application, and None after the last."""

    def __init__(self, body: Iterator[bytes]) -> None:
        self._body: Iterator[bytes] | None = body
        self.sent: SimpleQueue[MutableMapping[str, Any] | None] = SimpleQueue()

    async def receive(self) -> dict[str, Any]:
        if self._body is None:
            await sleep_forever()
            raise AssertionError("nothing follows a body")
        part = await to_thread.run_sync(next, self._body, None)
        if part is None:
            self._body = None
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.put(message)

    def end(self, _future: Future[Any]) -> None:
        self.sent.put(None)


class _Body(httpx.SyncByteStream):
    def __init__(self, exchange: _Exchange, future: Future[Any]) -> None:
        self._exchange, self._future = exchange, future

    def __iter__(self) -> Iterator[bytes]:
        while message := self._exchange.sent.get():
            yield message.get("body", b"")
            if not message.get("more_body"):
                return

    def close(self) -> None:
        self._future.cancel()
