"""The application of `geomill serve`: the services of one zone, without the platform's API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
from fastapi import Depends, FastAPI
from fastapi.responses import JSONResponse, RedirectResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.middleware.cors import CORSMiddleware

from geomill import __version__
from geomill.api import problems
from geomill.api.access import EVERYONE, STAFF, AccessRules, confirmed, mounted, require_complete
from geomill.api.authentication import Authenticator, OutsideAuthenticator
from geomill.api.figures import Figures
from geomill.api.guard import RequestGuard
from geomill.api.limits import BodyLimit, BrowserGuard
from geomill.api.measuring import Measuring
from geomill.api.rates import Buckets
from geomill.api.readiness import NOBODY, refusal
from geomill.api.replanning import Replanning
from geomill.api.schema_watch import SchemaWatch
from geomill.api.tokens import Tokens
from geomill.domain.objectname import Zone
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.store import schema_objects, serving
from geomill.store.pool import open_pool

POOL_SIZE = 4
PATIENCE_SECONDS = 2.0
OPEN = ("GET /", "GET /health/live", "GET /health/ready")


def create_serving_app(services: Services, url: str, access: AccessSettings, *, hosts: Collection[str] = ()) -> FastAPI:
    """Build the application. `url` is the zone's database. Everything in the external zone is public, so there only
    `/metrics` needs a credential."""
    external = services.zone is Zone.EXTERNAL

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            pool = await stack.enter_async_context(open_pool(url, size=POOL_SIZE, name="geomill serve", idle=True))
            app.state.pool, app.state.figures = pool, Figures(pool, {})
            if external:
                app.state.authenticator = OutsideAuthenticator(access.metrics_key, Tokens.of(access))
            else:
                app.state.authenticator = authenticator = Authenticator(pool, Tokens.of(access))
                await stack.enter_async_context(authenticator.noting())
            await stack.enter_async_context(services.running(pool))
            yield

    app = FastAPI(
        title="geomill",
        version=__version__,
        openapi_url=None,
        lifespan=lifespan,
        dependencies=[Depends(confirmed)],
    )
    _add_routes(app, services)
    rules = {**dict.fromkeys(OPEN, EVERYONE), "GET /metrics": STAFF, **mounted(services.prefixes)}
    require_complete(app, rules)
    problems.install(app)
    submissions = Buckets(access.submit_rate, access.submit_burst)
    app.add_middleware(Replanning)
    app.add_middleware(RequestGuard, rules=AccessRules(rules), submissions=submissions, by_sight=not external)
    app.add_middleware(BodyLimit, largest=access.body_limit)
    app.add_middleware(BrowserGuard, hosts=hosts, origins=access.cors_origins)
    if external or access.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=["*"] if external else access.cors_origins,
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["Authorization", "X-API-Key", "Content-Type"],
            expose_headers=["ETag", "Content-Bbox", "Content-Crs"],
        )
    app.add_middleware(Measuring)
    return app


def _add_routes(app: FastAPI, services: Services) -> None:
    @app.get("/")
    async def landing() -> RedirectResponse:
        return RedirectResponse("viewer/")

    @app.get("/health/live")
    async def live() -> dict[str, str]:
        return {"status": "live"}

    schema = SchemaWatch(schema_objects.losses)

    @app.get("/health/ready")
    async def ready() -> JSONResponse:
        reasons = [] if services.built else ["the services are still starting"]
        try:
            async with app.state.pool.connection(timeout=PATIENCE_SECONDS) as conn:
                if problem := await schema.problem(conn):
                    reasons.append(problem)
                else:
                    await serving.find(conn, services.zone, NOBODY)
        except psycopg.Error as error:
            schema.doubt()
            reasons.append(refusal(error))
        return JSONResponse(
            {"status": "not ready" if reasons else "ready", "reasons": reasons}, status_code=503 if reasons else 200
        )

    @app.get("/metrics")
    async def prometheus() -> Response:
        return Response(await app.state.figures.text(), media_type=CONTENT_TYPE_LATEST)

    for prefix in services.prefixes:
        app.mount(prefix, services.part(prefix))
