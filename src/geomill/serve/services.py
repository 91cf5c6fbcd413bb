"""The services of a zone: catalogue, rasters, features and viewer, each an application of its own, in one process.

Importing them takes seconds, so they are built beside the start of whoever mounts them; requests that come before wait.
What cannot be built, because a database is away, is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import psycopg
from starlette.types import ASGIApp, Receive, Scope, Send

from geomill.api.problems import respond_to
from geomill.domain.access.signed_link import LinkKey
from geomill.domain.objectname import Zone
from geomill.errors import GeomillError, InputError, UnavailableError
from geomill.serve.access import sight_for, signed_link
from geomill.storage import Storage
from geomill.store.pool import Pool

if TYPE_CHECKING:  # its imports take long
    from geomill.serve.directory import Directory

log = logging.getLogger(__name__)

PREFIXES = ("/stac", "/raster", "/vector", "/viewer")
OURS = ("router", "route", "endpoint", "path_params")
"""What the application around has put into a request's scope. Links would be looked for in it."""
PATIENCE_SECONDS = 20.0
"""Of a request that comes before the services are there."""
PAUSE_SECONDS = 5.0
LEISURE_SECONDS = 5.0
"""Before they are built although nobody asks: at a start the processors have other things to do."""


def _check_characters(scope: Scope) -> None:
    """PostgreSQL has no text with NUL in it, and drivers take it for a lost connection."""
    if "\x00" in scope["path"] or b"%00" in scope.get("query_string", b""):
        raise InputError("the address has a NUL character (%00), which nothing here has in its name or value")


@dataclass(frozen=True, slots=True)
class _Route:
    """For who counts requests by route."""

    path: str


class Services:
    """`url` is the database of the zone. `key` signs links; without one there are none."""

    prefixes = PREFIXES

    def __init__(self, zone: Zone, url: str, storage: Storage, key: LinkKey | None = None) -> None:
        self.zone, self._url, self._storage, self._key = zone, url, storage, key
        self._apps: Mapping[str, ASGIApp] = {}
        self._directory: Directory  # made with the applications
        self._built, self._wanted = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def running(self, pool: Pool) -> AsyncIterator[None]:
        stop = asyncio.Event()
        keeper = asyncio.create_task(self._keep(pool, stop), name="services")
        try:
            yield
        finally:
            stop.set()
            if not self._built.is_set():
                keeper.cancel()
            await asyncio.wait({keeper})

    def part(self, prefix: str) -> ASGIApp:
        """What is mounted there."""

        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                _check_characters(scope)
                sight, link = sight_for(scope, self.zone, prefix), signed_link(scope, self.zone, self._key)
                app = await self._app(prefix)
                if link:
                    await self._directory.require_link(link.asset_id, link.generation)
                    sight = sight.model_copy(update={"asset_id": link.asset_id})
            except (GeomillError, psycopg.Error) as error:
                await respond_to(scope["path"], error)(scope, receive, send)
                return
            inner: dict[str, Any] = {
                **{name: value for name, value in scope.items() if name not in OURS},
                "state": {**scope.get("state", {}), "sight": sight},
                "app_root_path": scope["root_path"],  # else links would begin above the mount
            }
            try:
                await app(inner, receive, send)
            finally:
                scope["route"] = _Route(prefix + getattr(inner.get("route"), "path", ""))

        return call

    @property
    def built(self) -> bool:
        return self._built.is_set()

    async def _app(self, prefix: str) -> ASGIApp:
        self._wanted.set()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._built.wait()
        except TimeoutError:
            raise UnavailableError("the services are not there yet", remedy="try again in a moment") from None
        if prefix not in self._apps:
            raise UnavailableError(f"there is no {prefix} in this release")
        return self._apps[prefix]

    async def _keep(self, pool: Pool, stop: asyncio.Event) -> None:
        """Enters and leaves what the applications hold open, in one task."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wanted.wait(), LEISURE_SECONDS)
        while not stop.is_set():
            async with AsyncExitStack() as stack:
                try:
                    self._apps = await self._build(pool, stack)
                except Exception:  # whatever a library raises: it is told, and tried again
                    log.exception("the services could not be built", extra={"action": "serve"})
                else:
                    self._built.set()
                    log.info("the services are there", extra={"action": "serve", "zone": self.zone.value})
                    await stop.wait()
                    return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _build(self, pool: Pool, stack: AsyncExitStack) -> Mapping[str, ASGIApp]:
        apps = await asyncio.to_thread(self._create, pool)
        for app in apps.values():
            await stack.enter_async_context(app.router.lifespan_context(app))
        return apps

    def _create(self, pool: Pool) -> dict[str, Any]:
        """In a thread, because of the imports."""
        from geomill.serve.directory import Directory
        from geomill.serve.raster.app import create_raster_app
        from geomill.serve.stac import create_stac_app
        from geomill.serve.vector.app import create_vector_app
        from geomill.serve.viewer.app import create_viewer_app

        directory = self._directory = Directory(pool, self.zone)
        zone: Literal["external", "internal"] = "external" if self.zone is Zone.EXTERNAL else "internal"
        return {
            "/stac": create_stac_app(database_url=self._url, zone=zone, storage=self._storage),
            "/raster": create_raster_app(directory, self._storage),
            "/vector": create_vector_app(directory, self._url),
            "/viewer": create_viewer_app(directory),
        }
