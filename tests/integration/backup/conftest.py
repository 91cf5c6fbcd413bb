"""A platform with something of everything in it, and two empty databases to restore it into."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from geomill.backup.creation import BackupSource, create
from geomill.backup.manifest import Manifest
from geomill.backup.metering import ProgressMeter, Silent
from geomill.backup.restoration import (
    RestoredDatabases,
    RestoredObjects,
    require_empty_target,
    require_fit,
    restore_databases,
    restore_keys,
    restore_objects,
)
from geomill.backup.verification import Verdict, read_manifest, verify
from geomill.backup.zones import Objects
from geomill.domain.access.principal import Role
from geomill.domain.entity import Entity
from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.storage import StorageRecipe, SyncStorage
from geomill.storage.depot import Depot, FolderDepot
from geomill.store.connection import connect
from geomill.store.describe import table_name
from geomill.store.migrate import migrate
from geomill.store.pool import open_pool
from tests.integration.api.conftest import make_key
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import FILE, put_asset

LAYER = """
    CREATE SCHEMA IF NOT EXISTS geo;
    CREATE SCHEMA IF NOT EXISTS geo_staging;
    CREATE TABLE geo."Fields of ""a""_r1" (ogc_fid bigint NOT NULL, "na me" text, at timestamptz, size double precision,
        tags jsonb, raw bytea, geom geometry(Polygon, 4326));
    ALTER TABLE geo."Fields of ""a""_r1" ADD PRIMARY KEY (ogc_fid);
    CREATE INDEX fields_place ON geo."Fields of ""a""_r1" USING gist (geom);
    COMMENT ON TABLE geo."Fields of ""a""_r1" IS 'it''s a layer';
    COMMENT ON COLUMN geo."Fields of ""a""_r1"."na me" IS 'na\\me';
    INSERT INTO geo."Fields of ""a""_r1"
    SELECT n, E'a\\ttab, a \\\\ and a\\nline ' || n, '2024-02-29 12:00:00.123456+02', 1.0 / n, '{"a": [1, null]}',
           '\\x00ff', st_makeenvelope(n, 0, n + 0.1, 1, 4326)
    FROM generate_series(1, 50) AS n;
    INSERT INTO geo."Fields of ""a""_r1" (ogc_fid) VALUES (99);
    CREATE TABLE geo_staging.load_x (ogc_fid bigint NOT NULL, geom geometry(Point, 4326));
    INSERT INTO geo_staging.load_x SELECT n, st_point(n, n, 4326) FROM generate_series(1, 20) AS n;
"""
WORK = """
    INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)
    VALUES ('abc', 'hello_world', 1, '{}');
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, definition_hash, status, owner_id, owner_epoch,
        started_at)
    VALUES ('job-1', 'hello_world', 1, 'abc', 'running', 'orch-gone', 3, now());
    INSERT INTO dagapp.dag_job_events (job_id, event_type) SELECT 'job-1', 'job_created' FROM generate_series(1, 5);
    INSERT INTO dagapp.dag_queue (queue_name, message_id, body, delivery_count, lease_token, leased_by, leased_until)
    VALUES ('io-tasks', 'job-1:a:1', '{"task_id": "job-1:a:1"}', 2, 2, 'work-gone', now() + '1 hour');
    INSERT INTO dagapp.dag_instances (instance_id, role, hostname, pid, lock_key, version)
    VALUES ('orch-gone', 'orchestrator', 'h', 1, 1, 'v');
    INSERT INTO dagapp.dag_schedules (schedule_id, workflow_id, interval_seconds, catch_up, next_due_at)
    VALUES ('hourly', 'hello_world', 3600, 'all', now() - '5 hours'::interval);
"""


@dataclass(frozen=True)
class Place:
    """Databases and zones of a platform."""

    inside: str
    outside: str
    storage: SyncStorage
    data: Path

    def rows(self, query: str, *, outside: bool = False) -> list[dict[str, Any]]:
        with psycopg.connect(self.outside if outside else self.inside, row_factory=dict_row) as conn:
            return conn.execute(query).fetchall()  # type: ignore[arg-type]

    def execute(self, script: str, *, outside: bool = False) -> None:
        with psycopg.connect(self.outside if outside else self.inside, autocommit=True) as conn:
            conn.execute(script.encode())

    def contents(self, models: Sequence[type[Entity]], *, outside: bool = False) -> dict[str, Any]:
        """Every row of our tables, of pgstac and of the tables of features, as text."""
        names = [table_name(model) for model in models]
        names += [row["name"] for row in self.rows(FEATURE_TABLES, outside=outside)]
        names += ["pgstac.items"]
        query = "SELECT t::text AS row FROM {} AS t ORDER BY 1"
        return {name: self.rows(query.format(name), outside=outside) for name in names}


FEATURE_TABLES = """SELECT oid::regclass::text AS name FROM pg_class
    WHERE relkind = 'r' AND relnamespace = ANY (ARRAY[to_regnamespace('geo'), to_regnamespace('geo_staging')])
    ORDER BY 1"""


@pytest.fixture
def source(database: str, external_database: str, tmp_path: Path) -> Place:
    """A platform that the test may change."""
    return _platform(database, external_database, tmp_path / "data")


@pytest.fixture(scope="module")
def unchanged_source(
    server: str, migrated_template: str, external_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A platform for all tests of a module that leave it as it is."""
    with _databases(server, migrated_template, external_template) as (inside, outside):
        yield _platform(inside, outside, tmp_path_factory.mktemp("source") / "data")


@pytest.fixture(scope="module")
def original_backup(unchanged_source: Place, tmp_path_factory: pytest.TempPathFactory) -> FolderDepot:
    depot = FolderDepot(tmp_path_factory.mktemp("original") / "backup")
    back_up(unchanged_source, depot)
    return depot


@pytest.fixture
def backup(original_backup: FolderDepot, depot: FolderDepot) -> FolderDepot:
    """A backup of the unchanged source, which the test may damage."""
    shutil.copytree(original_backup.root, depot.root)
    return depot


def _platform(inside: str, outside: str, data: Path) -> Place:
    place = Place(inside, outside, SyncStorage(StorageRecipe.in_folder(data)), data)
    place.storage.prepare()
    asyncio.run(_fill(place))
    place.execute(LAYER)
    place.execute(WORK)
    for name in ("link.key", "admin.key"):
        (data / name).write_text(f"secret of {name}\n")
    return place


@contextmanager
def _databases(server: str, *templates: str) -> Iterator[list[str]]:
    """The URLs of new copies of the templates."""
    names = [f"geomill_backup_{uuid4().hex[:8]}" for _ in templates]
    with psycopg.connect(server, autocommit=True) as admin:
        for name, template in zip(names, templates, strict=True):
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")  # type: ignore[arg-type]
        yield [urlsplit(server)._replace(path=f"/{name}").geturl() for name in names]
        for name in names:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


async def _fill(place: Place) -> None:
    await make_key(place.inside, Role.ADMIN, name="admin")
    async with open_pool(place.inside, size=1) as pool, pool.connection() as conn:
        for number, kind in enumerate(("public", "ouo", "rejected", "deleted")):
            file = {"zone": "silver", "container": "cogs", "path": f"{kind}/_r1/a.tif", "size": len(FILE)}
            await put_asset(conn, kind, "ddh", kind, "ours", an_item(10.0 * number), [{**file, "sha256": "ab" * 32}])
            await asyncio.to_thread(place.storage.put_bytes, ObjectName(Zone.SILVER, "cogs", file["path"]), FILE)
        await asyncio.to_thread(
            place.storage.put_bytes, ObjectName(Zone.BRONZE, "uploads", "große datei.bin"), FILE * 900
        )
        await _put_item(conn, "by-hand")
    async with open_pool(place.outside, size=1) as pool, pool.connection() as conn:
        await _put_item(conn, "outside")


async def _put_item(conn: Any, name: str) -> None:
    item = {**an_item(-5.123456789012345), "id": name, "collection": "others"}
    collection = {"stac_version": "1.1.0", "license": "other", "description": "by hand", "keywords": ["a"]}
    query = "SELECT catalogue.write_items(%s, %s::jsonb, 'ddh', ARRAY[%s::jsonb], '{}', '{}')"
    await conn.execute(query, ("others", json.dumps(collection), json.dumps(item)))


@pytest.fixture
def depot(tmp_path: Path) -> FolderDepot:
    return FolderDepot(tmp_path / "backup")


@pytest.fixture
def target(server: str, migrated_template: str, external_template: str, tmp_path: Path) -> Iterator[Place]:
    """Databases with our schema and nothing in it, which a restoration accepts."""
    data = tmp_path / "restored"
    with _databases(server, migrated_template, external_template) as (inside, outside):
        yield Place(inside, outside, SyncStorage(StorageRecipe.in_folder(data)), data)


@pytest.fixture
def bare_target(server: str, bare_template: str, tmp_path: Path) -> Iterator[Place]:
    """Databases without our schema: a restoration makes it."""
    data = tmp_path / "restored"
    with _databases(server, bare_template, bare_template) as (inside, outside):
        yield Place(inside, outside, SyncStorage(StorageRecipe.in_folder(data)), data)


def back_up(
    place: Place, depot: Depot, objects: Objects = Objects.AUTO, meter: ProgressMeter | None = None
) -> Manifest:
    source = BackupSource(place.inside, place.outside, place.storage, place.data)
    return create(source, depot, objects, meter or Silent())


def check(depot: Depot) -> Verdict:
    return verify(depot, read_manifest(depot), Silent())


def restore(depot: Depot, place: Place, *, cancel_jobs: bool = False) -> tuple[RestoredObjects, RestoredDatabases]:
    """Restore a backup as the command does."""
    manifest = read_manifest(depot)
    require_fit(manifest, has_outside=True)
    asyncio.run(require_empty_target(place.inside, place.outside))
    restore_keys(depot, manifest, place.data)
    objects = restore_objects(depot, manifest, place.storage, Silent())
    asyncio.run(_migrate(place.inside, TABLES))
    asyncio.run(_migrate(place.outside, EXTERNAL_TABLES))
    loading = restore_databases(
        depot,
        manifest,
        place.inside,
        place.outside,
        Silent(),
        job_queue="dag-jobs",
        cancel_jobs=cancel_jobs,
        etags=objects.etags,
    )
    return objects, asyncio.run(loading)


async def _migrate(url: str, tables: Sequence[type[Entity]]) -> None:
    async with await connect(url) as conn:
        await migrate(conn, tables)


def rewritten(depot: Depot, change: Callable[[dict[str, Any]], None]) -> None:
    """A manifest of somebody who can compute hashes, written over the one that is there."""
    assert isinstance(depot, FolderDepot)
    document = read_manifest(depot).model_dump(mode="json")
    change(document)
    digest = sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    (depot.root / "manifest.json").write_text(json.dumps({"manifest_sha256": digest, "manifest": document}))


def repack(depot: FolderDepot, part: dict[str, Any], content: bytes) -> None:
    """Another content for one file, with the hashes that belong to it."""
    packed = gzip.compress(content)
    (depot.root / part["path"]).write_bytes(packed)
    part.update(size=len(content), packed=len(packed), sha256=sha256(packed).hexdigest())
