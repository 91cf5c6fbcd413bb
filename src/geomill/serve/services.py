"""The services of a zone, each an application of its own, in one process: catalogue, rasters, features and viewer.

Importing them takes seconds, so they are built in the background while the application that mounts them starts. Earlier
requests wait. If building fails, for example because a database is unreachable, it is tried again.
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

if TYPE_CHECKING:  # their imports take long
    from geomill.platform.extracts import ExtractOffice
    from geomill.serve.directory import Directory

log = logging.getLogger(__name__)

PREFIXES = ("/stac", "/raster", "/vector", "/viewer", "/wms")
OUTER_KEYS = ("router", "route", "endpoint", "path_params")
"""Keys that the outer application adds to the scope. Inner applications must not resolve links with them."""
PATIENCE_SECONDS = 20.0
"""How long a request waits for services that are still starting."""
PAUSE_SECONDS = 5.0
LEISURE_SECONDS = 5.0
"""How long to wait before building without a request, because processors are busy at startup."""


def _check_characters(scope: Scope) -> None:
    """Refuse NUL. PostgreSQL texts cannot contain it, and drivers mistake the error for a lost connection."""
    if "\x00" in scope["path"] or b"%00" in scope.get("query_string", b""):
        raise InputError("the address contains a NUL character (%00), which no name or value can have")


@dataclass(frozen=True, slots=True)
class _Route:
    """A route for the request metrics."""

    path: str


class Services:
    """The services of a zone. `url` is the zone's database. `key` signs links; without one links are not signed.
    `office` takes orders of extracts; without one they are refused."""

    prefixes = PREFIXES

    def __init__(
        self, zone: Zone, url: str, storage: Storage, key: LinkKey | None = None, office: ExtractOffice | None = None
    ) -> None:
        self.zone, self._url, self._storage, self._key, self._office = zone, url, storage, key, office
        self._apps: Mapping[str, ASGIApp] = {}
        self._directory: Directory  # set when the applications are built
        self._built, self._requested = asyncio.Event(), asyncio.Event()

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
        """Return the application to mount at the prefix."""

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
                **{name: value for name, value in scope.items() if name not in OUTER_KEYS},
                "state": {**scope.get("state", {}), "sight": sight},
                "app_root_path": scope["root_path"],  # otherwise links would miss the mount prefix
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
        self._requested.set()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._built.wait()
        except TimeoutError:
            raise UnavailableError("the services are still starting", remedy="try again in a moment") from None
        if prefix not in self._apps:
            raise UnavailableError(f"this release has no service {prefix}")
        return self._apps[prefix]

    async def _keep(self, pool: Pool, stop: asyncio.Event) -> None:
        """Build the services and keep them open, entering and leaving their contexts in one task."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._requested.wait(), LEISURE_SECONDS)
        while not stop.is_set():
            async with AsyncExitStack() as stack:
                try:
                    self._apps = await self._build(pool, stack)
                except Exception:  # any error of a library is logged and building is tried again
                    log.exception("the services could not be built", extra={"action": "serve"})
                else:
                    self._built.set()
                    log.info("the services have started", extra={"action": "serve", "zone": self.zone.value})
                    await stop.wait()
                    return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _build(self, pool: Pool, stack: AsyncExitStack) -> Mapping[str, ASGIApp]:
        apps = await asyncio.to_thread(self._create, pool)
        for app in apps.values():
            await stack.enter_async_context(app.router.lifespan_context(app))
        return apps

    def _create(self, pool: Pool) -> dict[str, Any]:
        """Import and create the applications. Runs in a thread because the imports are slow."""
        from geomill.serve import searches
        from geomill.serve.directory import Directory
        from geomill.serve.downloads.extracts import Extracts
        from geomill.serve.raster.app import create_raster_app
        from geomill.serve.stac import create_stac_app
        from geomill.serve.vector.app import create_vector_app
        from geomill.serve.viewer.app import create_viewer_app
        from geomill.serve.wms.app import create_wms_app

        directory = self._directory = Directory(pool, self.zone)
        extracts = Extracts(directory, self._storage, pool, self._office)
        raster_app = create_raster_app(directory, self._storage, extracts)
        vector_app = create_vector_app(directory, self._url, extracts)
        zone: Literal["external", "internal"] = "external" if self.zone is Zone.EXTERNAL else "internal"
        stac_app = create_stac_app(database_url=self._url, zone=zone, storage=self._storage, directory=directory)
        raster_app.include_router(searches.router(directory, stac_app))
        return {
            "/stac": stac_app,
            "/raster": raster_app,
            "/vector": vector_app,
            "/viewer": create_viewer_app(directory),
            "/wms": create_wms_app(directory, raster_app, vector_app),
        }
