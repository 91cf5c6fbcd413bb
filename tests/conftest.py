"""One PostgreSQL server per test run, one template database, one database per test.

The server is a private cluster of ours, or the one that TEST_DATABASE_URL names. With several test processes the first
one makes the cluster's folder; whoever comes first starts the server.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings as hypothesis_settings

from geomill.domain.entity import Entity
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.embedded import Cluster
from geomill.store import pgstac
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from geomill.store.pool import Pool, open_pool

FOLDER = "TEST_CLUSTER_FOLDER"
# The same examples each time, so that a run says something about the change and not about luck. To look for new ones:
# HYPOTHESIS=explore script/test tests/unit
hypothesis_settings.register_profile("same", deadline=None, derandomize=True)
hypothesis_settings.register_profile("explore", deadline=None, max_examples=1_000)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS", "same"))

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "300"}


def pytest_configure(config: pytest.Config) -> None:
    for name in [name for name in os.environ if name.startswith("GEOMILL_")]:
        del os.environ[name]
    if FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="geomill-test-", dir="/tmp")
        Path(folder).chmod(0o755)
        os.environ[FOLDER] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and FOLDER in os.environ:
        folder = Path(os.environ.pop(FOLDER))
        Cluster(folder).stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> str:
    """A URL of the maintenance database, with the right to create others."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        return url
    cluster = Cluster(Path(os.environ[FOLDER]), settings=FAST)
    cluster.start()
    return cluster.url("postgres")


def _url(server: str, database: str) -> str:
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def _template(server: str, tables: Sequence[type[Entity]]) -> Iterator[str]:
    name = f"geomill_template_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        url = _url(server, name)
        asyncio.run(_prepare(url, tables))
        yield name
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def _prepare(url: str, tables: Sequence[type[Entity]]) -> None:
    async with await connect(url) as conn:
        if tables:
            await migrate(conn, tables)
            return
        await conn.execute("CREATE EXTENSION postgis")
        while await pgstac.installed(conn) is None:
            try:
                async with conn.transaction():
                    for change in await pgstac.changes(conn):
                        await conn.execute((change.script or ";\n".join(change.statements)).encode())
            except (psycopg.errors.UniqueViolation, psycopg.errors.InternalError_):
                await asyncio.sleep(0.2)  # another test process makes the same roles


@pytest.fixture(scope="session")
def bare_template(server: str) -> Iterator[str]:
    """PostGIS, pgstac and nothing of ours: making it takes seconds, copying it does not."""
    yield from _template(server, ())


@pytest.fixture(scope="session")
def migrated_template(server: str) -> Iterator[str]:
    yield from _template(server, TABLES)


@pytest.fixture(scope="session")
def external_template(server: str) -> Iterator[str]:
    yield from _template(server, EXTERNAL_TABLES)


def _copy(server: str, template: str) -> Iterator[str]:
    name = f"geomill_test_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield _url(server, name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_database(server: str, bare_template: str) -> Iterator[str]:
    """The URL of a fresh database without our schema."""
    yield from _copy(server, bare_template)


@pytest.fixture
def database(server: str, migrated_template: str) -> Iterator[str]:
    """The URL of a fresh database with our schema."""
    yield from _copy(server, migrated_template)


@pytest.fixture
def external_database(server: str, external_template: str) -> Iterator[str]:
    """The URL of a fresh database of the external zone."""
    yield from _copy(server, external_template)


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, size=8, hot=True) as pool:
        yield pool


@pytest.fixture
async def conn(empty_database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await connect(empty_database) as conn:
        yield conn
