"""The servers that `serving.py` compares, each as a program of its own, called with folder, database and port."""

from __future__ import annotations

GEOMILL = """
import asyncio, sys, socket
from geomill.domain.objectname import Zone
from geomill.serve.app import create_serving_app
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.storage import Recipe, Storage
from pathlib import Path
import uvicorn
folder, url, port = sys.argv[1:]
app = create_serving_app(Services(Zone.SILVER, url, Storage(Recipe.in_folder(Path(folder)))), url, AccessSettings())
uvicorn.run(app, port=int(port), log_level="error", access_log=False, loop="uvloop")
"""
TITILER = """
import sys, uvicorn
from fastapi import FastAPI
from titiler.core.factory import TilerFactory
from titiler.core.errors import DEFAULT_STATUS_CODES, add_exception_handlers
app = FastAPI()
app.include_router(TilerFactory().router)
add_exception_handlers(app, DEFAULT_STATUS_CODES)
uvicorn.run(app, port=int(sys.argv[3]), log_level="error", access_log=False, loop="uvloop")
"""
TIPG = """
import sys, os, uvicorn
from contextlib import asynccontextmanager
from fastapi import FastAPI
from tipg.collections import register_collection_catalog
from tipg.database import close_db_connection, connect_to_db
from tipg.factory import Endpoints
from tipg.settings import DatabaseSettings, PostgresSettings
settings = DatabaseSettings(schemas=["geo"])
@asynccontextmanager
async def lifespan(app):
    await connect_to_db(app, schemas=["geo"], settings=PostgresSettings.model_construct(
        database_url=sys.argv[2], db_min_conn_size=1, db_max_conn_size=8, db_max_queries=50000,
        db_max_inactive_conn_lifetime=300))
    await register_collection_catalog(app, db_settings=settings)
    yield
    await close_db_connection(app)
app = FastAPI(lifespan=lifespan, openapi_url="/api", docs_url="/api.html")
app.include_router(Endpoints().router)
uvicorn.run(app, port=int(sys.argv[3]), log_level="error", access_log=False, loop="uvloop")
"""
STAC = """
import asyncio, sys, uvicorn
from contextlib import asynccontextmanager
import asyncpg
from stac_fastapi.pgstac.app import instantiate_api
from stac_fastapi.pgstac.config import ServerSettings
from stac_fastapi.pgstac.db import con_init, get_connection
@asynccontextmanager
async def lifespan(app):
    # as its own `connect_to_db`, which asks for user, password and host apart; we come by a socket
    async with asyncpg.create_pool(sys.argv[2], min_size=1, max_size=10, init=con_init,
                                   server_settings=ServerSettings().model_dump()) as pool:
        app.state.readpool, app.state.get_connection = pool, get_connection
        yield
app = instantiate_api(lifespan=lifespan).app
uvicorn.run(app, port=int(sys.argv[3]), log_level="error", access_log=False, loop="uvloop")
"""
