"""One PostgreSQL server per test run, one set of template databases, one database per test process.

The server is a private cluster of ours, or the one that TEST_DATABASE_URL names. With several test processes the first
one makes the cluster's folder; the process that needs the server first starts it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings as hypothesis_settings

from geomill.domain.entity import Entity
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.embedded import Cluster
from geomill.queues.servicebus import BusOptions
from geomill.store import pgstac
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from geomill.store.pool import Pool, open_pool
from tests.databases import ReusedDatabase, Templates, copied, use_cheap_password

FOLDER = "TEST_CLUSTER_FOLDER"
ROOM = 4 * 1024**3
# The same examples each time, so that a run says something about the change and not about luck. To look for new ones:
# HYPOTHESIS=explore script/test tests/unit
hypothesis_settings.register_profile("same", deadline=None, derandomize=True)
hypothesis_settings.register_profile("explore", deadline=None, max_examples=1_000)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS", "same"))

FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "autovacuum": "off",  # it would change plans in the middle of a test
}


# Bytecode is kept even where the environment says otherwise: without it each of the many processes that tests start
# compiles its modules again, which doubles the time until it is ready.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    for name in [name for name in os.environ if name.startswith("GEOMILL_")]:
        del os.environ[name]
    if FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="geomill-test-", dir=_memory() or "/tmp")
        Path(folder).chmod(0o755)
        os.environ[FOLDER] = folder


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spares the garbage collector from looking through thousands of tests and modules again and again."""
    gc.collect()
    gc.freeze()


def _memory() -> str | None:
    """A file system in memory that has room for the databases: writing to a disk costs a fifth of the time."""
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() and shutil.disk_usage(shared).free > ROOM else None


def pytest_unconfigure(config: pytest.Config) -> None:
    from tests.console.platform import stop_shared_platform  # it imports this module

    if not hasattr(config, "workerinput") and FOLDER in os.environ:
        folder = Path(os.environ[FOLDER])
        stop_shared_platform(folder)
        del os.environ[FOLDER]
        if url := os.environ.get("TEST_DATABASE_URL"):
            Templates(url, folder).drop()
        Cluster(folder).stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> str:
    """A URL of the maintenance database, with the right to create others."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        return url
    cluster = Cluster(Path(os.environ[FOLDER]), settings=FAST)
    if cluster.start():
        use_cheap_password(cluster.url("postgres"))
    return cluster.url("postgres")


@pytest.fixture(scope="session")
def templates(server: str) -> Templates:
    return Templates(server, Path(os.environ[FOLDER]))


def _prepare(tables: Sequence[type[Entity]], url: str) -> None:
    asyncio.run(_fill(url, tables))


async def _fill(url: str, tables: Sequence[type[Entity]]) -> None:
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
                await asyncio.sleep(0.2)  # a test in another process makes the same roles


@pytest.fixture(scope="session")
def bare_template(templates: Templates) -> str:
    """PostGIS, pgstac and nothing of ours: making it takes seconds, copying it does not."""
    return templates.get("bare", partial(_prepare, ()))


@pytest.fixture(scope="session")
def migrated_template(templates: Templates) -> str:
    return templates.get("migrated", partial(_prepare, TABLES))


@pytest.fixture(scope="session")
def external_template(templates: Templates) -> str:
    return templates.get("external", partial(_prepare, EXTERNAL_TABLES))


@pytest.fixture
def empty_database(server: str, bare_template: str) -> Iterator[str]:
    """The URL of a new database without our schema."""
    with copied(server, bare_template) as url:
        yield url


@pytest.fixture(scope="module")
def module_database(server: str, migrated_template: str) -> Iterator[str]:
    """The URL of a new database with our schema, for a module whose tests share what is in it."""
    with copied(server, migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def reused_database(server: str, migrated_template: str) -> Iterator[ReusedDatabase]:
    reused = ReusedDatabase(server, migrated_template)
    yield reused
    reused.drop()


@pytest.fixture(scope="session")
def reused_external_database(server: str, external_template: str) -> Iterator[ReusedDatabase]:
    reused = ReusedDatabase(server, external_template)
    yield reused
    reused.drop()


@pytest.fixture
def database(reused_database: ReusedDatabase) -> Iterator[str]:
    """The URL of a database with our schema, in which no test has left anything."""
    yield reused_database.url()
    reused_database.clean()


@pytest.fixture
def external_database(reused_external_database: ReusedDatabase) -> Iterator[str]:
    """The URL of a database of the external zone, in which no test has left anything."""
    yield reused_external_database.url()
    reused_external_database.clean()


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, size=8, hot=True) as pool:
        yield pool


@pytest.fixture
async def conn(empty_database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await connect(empty_database) as conn:
        yield conn


@pytest.fixture
def broker() -> BusOptions | None:
    """Service Bus, where a platform uses it. The tests of the engine replace this and run with both."""
    return None
