"""A restored platform has the same data as the one that was backed up."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import stat
import threading
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from geomill.backup.verification import read_manifest
from geomill.backup.zones import Objects
from geomill.catalogue import bulk
from geomill.domain.engine.instance import Instance
from geomill.domain.engine.message import QueueMessage
from geomill.domain.engine.schedule import Schedule
from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.schema_step import SchemaStep
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.errors import BackupInvalid, ConflictError, DatabaseUnfit, SettingsError, UnavailableError
from geomill.storage.depot import FolderDepot
from geomill.store import schema_objects
from geomill.store.migrate import plan
from geomill.store.pool import open_pool
from tests.integration.backup.conftest import Place, back_up, check, repack, restore, rewritten
from tests.integration.serve.stac.conftest import FILE
from tests.owners import PASSWORD, login

CHANGED = (Instance, QueueMessage, Schedule, SchemaStep)
"""Tables that a restoration does not bring back as they were."""
SHAPES = """SELECT a.attrelid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       col_description(a.attrelid, a.attnum), obj_description(a.attrelid, 'pg_class')
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE a.attnum > 0 AND c.relnamespace = ANY (ARRAY[to_regnamespace('geo'), to_regnamespace('geo_staging')])
    ORDER BY a.attrelid::regclass::text, a.attnum"""
TRIGGERS = "SELECT tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"
IDENTITIES = """SELECT max(event_id) AS last, nextval('dagapp.dag_job_events_event_id_seq') AS next
    FROM dagapp.dag_job_events"""


def test_everything_is_as_it_was(unchanged_source: Place, bare_target: Place, depot: FolderDepot) -> None:
    source = unchanged_source
    models = [model for model in TABLES if model not in CHANGED]
    external_models = [model for model in EXTERNAL_TABLES if model not in CHANGED]
    inside, outside = source.contents(models), source.contents(external_models, outside=True)
    manifest = back_up(source, depot)
    assert check(depot).problems == []
    objects, databases = restore(depot, bare_target)

    assert bare_target.contents(models) == inside
    assert bare_target.contents(external_models, outside=True) == outside
    for query in (SHAPES, TRIGGERS, "SELECT content FROM pgstac.collections ORDER BY id"):
        assert bare_target.rows(query) == source.rows(query)
    assert (objects.written, objects.unchanged, objects.missing, objects.different) == (5, 0, [], [])
    assert (databases.inside.lacking, databases.inside.different, databases.inside.added) == (1, 0, 0)
    identity = bare_target.rows(IDENTITIES)[0]
    assert identity["next"] > identity["last"]
    assert (bare_target.data / "link.key").read_text() == "secret of link.key\n"
    assert bare_target.storage.read(ObjectName(Zone.SILVER, "cogs", "ouo/_r1/a.tif")) == FILE
    assert manifest.objects.copied == 5
    asyncio.run(assert_sound(bare_target))


async def assert_sound(place: Place) -> None:
    async with open_pool(place.inside, size=1) as pool, pool.connection() as conn:
        checked = await bulk.check(conn)
        assert (checked.missing, checked.different, checked.miscounted, checked.strays) == (0, 0, 0, 1)
        assert (await plan(conn)).changes == ()


def test_what_the_migration_recorded_is_the_targets_own(source: Place, bare_target: Place, depot: FolderDepot) -> None:
    for outside in (False, True):
        source.execute("INSERT INTO catalogue.schema_objects VALUES ('table app.of_there', 'r')", outside=outside)
    back_up(source, depot)
    restore(depot, bare_target)
    for url in (bare_target.inside, bare_target.outside):
        assert asyncio.run(losses(url)) == []


async def losses(url: str) -> list[str]:
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        return await schema_objects.losses(conn)


def test_a_lease_is_given_back_and_no_schedule_fires_for_the_past(target: Place, backup: FolderDepot) -> None:
    _, databases = restore(backup, target)
    assert target.rows("SELECT delivery_count, lease_token, leased_by, leased_until FROM dagapp.dag_queue") == [
        {"delivery_count": 2, "lease_token": None, "leased_by": None, "leased_until": None}
    ]
    assert target.rows("SELECT instance_id FROM dagapp.dag_instances") == []
    assert target.rows("SELECT next_due_at > now() AS later FROM dagapp.dag_schedules") == [{"later": True}]
    resumed = databases.resumed
    assert (resumed.jobs, resumed.cancelled, resumed.released, resumed.postponed) == (1, 0, 1, ("hourly",))


@pytest.mark.slow
def test_an_open_job_knows_its_source_by_the_etag_that_it_has_now(
    source: Place, target: Place, depot: FolderDepot
) -> None:
    name = ObjectName(Zone.BRONZE, "uploads", "große datei.bin")
    old = source.storage.stat(name).etag
    note = json.dumps({"source": {"file_name": name.path, "etag": old}, "other": {"etag": "of another"}})
    source.execute(
        f"""INSERT INTO dagapp.dag_node_states (job_id, node_id, status, output, completed_at)
            VALUES ('job-1', 'validate', 'completed', '{note}', now());
            UPDATE dagapp.dag_queue SET body = '{note}'"""
    )
    back_up(source, depot)
    restore(depot, target)
    new = target.storage.stat(name).etag
    assert new != old
    for query in ("SELECT output AS note FROM dagapp.dag_node_states", "SELECT body AS note FROM dagapp.dag_queue"):
        (row,) = target.rows(query)
        assert (row["note"]["source"]["etag"], row["note"]["other"]["etag"]) == (new, "of another")


def test_jobs_are_told_to_end_where_that_is_asked(target: Place, backup: FolderDepot) -> None:
    _, databases = restore(backup, target, cancel_jobs=True)
    assert databases.resumed.cancelled == 1
    assert target.rows("SELECT job_id, report FROM dagapp.dag_inbox") == [{"job_id": "job-1", "report": "cancel"}]


def test_only_its_owner_reads_a_backup(unchanged_source: Place, target: Place, depot: FolderDepot) -> None:
    mask = os.umask(0)
    try:
        back_up(unchanged_source, depot)
        restore(depot, target)
    finally:
        os.umask(mask)
    for path in depot.root.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE(depot.root.stat().st_mode) == 0o700
    assert stat.S_IMODE((target.data / "link.key").stat().st_mode) == 0o600


class Writers:
    """Puts a job and its event into the database, in one transaction, again and again."""

    def __init__(self, url: str) -> None:
        self._url, self._stop, self.begun = url, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writers:
        self._thread.start()
        assert self.begun.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as conn:
            number = 0
            while not self._stop.is_set():
                name = f"pair-{number}"
                with conn.transaction():
                    conn.execute(
                        "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, definition_hash)"
                        " VALUES (%s, 'w', 1, 'abc')",
                        (name,),
                    )
                    conn.execute(
                        "INSERT INTO dagapp.dag_job_events (job_id, event_type) VALUES (%s, 'job_created')", (name,)
                    )
                number += 1
                if number > 20:
                    self.begun.set()


def test_a_backup_is_of_one_moment(source: Place, target: Place, depot: FolderDepot) -> None:
    with Writers(source.inside):
        back_up(source, depot)
    restore(depot, target)
    pairs = target.rows("SELECT job_id FROM dagapp.dag_jobs WHERE job_id LIKE 'pair%' ORDER BY 1")
    assert len(pairs) > 20
    assert pairs == target.rows("SELECT job_id FROM dagapp.dag_job_events WHERE job_id LIKE 'pair%' ORDER BY 1")
    there = source.rows("SELECT count(*) AS n FROM dagapp.dag_jobs WHERE job_id LIKE 'pair%'")[0]["n"]
    assert there >= len(pairs)


class Meddler:
    """Changes tables of features after the snapshot was taken, and before they are copied."""

    def __init__(self, place: Place) -> None:
        self._place, self._done = place, False

    def begin(self, title: str, total: int) -> None:
        if title == "database inside":
            self._place.execute(
                "ALTER TABLE geo_staging.load_x SET SCHEMA geo; ALTER TABLE geo.load_x RENAME TO finished;"
                "ALTER TABLE geo.finished ADD PRIMARY KEY (ogc_fid); DROP TABLE geo.gone;"
            )

    def advance(self, amount: int) -> None:
        pass


def test_a_layer_that_is_published_or_deleted_meanwhile(source: Place, target: Place, depot: FolderDepot) -> None:
    source.execute("CREATE TABLE geo.gone (a integer); CREATE TABLE geo.strange (a tsvector)")
    manifest = back_up(source, depot, meter=Meddler(source))
    assert manifest.inside.left_out == [
        "geo.gone: it was deleted while the backup ran",
        "geo.strange: a column has the type tsvector",
    ]
    restore(depot, target)
    assert target.rows("SELECT count(*) AS n FROM geo_staging.load_x") == [{"n": 20}]


class Cutter:
    """Ends all sessions of the database when the rows are about to be read."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def begin(self, title: str, total: int) -> None:
        self._place.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def advance(self, amount: int) -> None:
        pass


def test_a_database_that_goes_away_leaves_nothing_that_looks_like_a_backup(source: Place, depot: FolderDepot) -> None:
    with pytest.raises(UnavailableError, match="the database did not let us read it"):
        back_up(source, depot, meter=Cutter(source))
    with pytest.raises(BackupInvalid, match="there is no backup"):
        check(depot)


def test_a_role_that_may_not_read_everything_is_told_so(
    unchanged_source: Place, depot: FolderDepot, server: str
) -> None:
    role = f"visitor_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")  # type: ignore[arg-type]
        try:
            with pytest.raises(DatabaseUnfit, match="may not read it"):
                back_up(replace(unchanged_source, inside=login(unchanged_source.inside, role)), depot)
        finally:
            admin.execute(f"DROP ROLE {role}")  # type: ignore[arg-type]


def test_objects_that_are_gone_are_listed(source: Place, target: Place, depot: FolderDepot) -> None:
    source.storage.delete(ObjectName(Zone.SILVER, "cogs", "ouo/_r1/a.tif"))
    assert back_up(source, depot).objects.missing == 1
    assert check(depot).problems == []
    objects, _ = restore(depot, target)
    assert objects.missing == ["silver/cogs/ouo/_r1/a.tif"]


def test_objects_that_are_there_stay(target: Place, backup: FolderDepot) -> None:
    same, other = (ObjectName(Zone.SILVER, "cogs", f"{kind}/_r1/a.tif") for kind in ("public", "ouo"))
    target.storage.put_bytes(same, FILE)
    target.storage.put_bytes(other, FILE[::-1])
    objects, _ = restore(backup, target)
    assert (objects.written, objects.unchanged, objects.different) == (3, 1, [str(other)])
    assert target.storage.read(other) == FILE[::-1]


def test_a_list_of_objects_without_copies(unchanged_source: Place, target: Place, depot: FolderDepot) -> None:
    manifest = back_up(unchanged_source, depot, Objects.LIST)
    assert (manifest.objects.objects, manifest.objects.copied) == (5, 0)
    objects, _ = restore(depot, replace(target, storage=unchanged_source.storage))
    assert (objects.written, objects.unchanged, objects.missing) == (0, 5, [])


def test_a_target_with_something_in_it_is_refused_and_stays(
    unchanged_source: Place, target: Place, backup: FolderDepot
) -> None:
    restore(backup, target)
    with pytest.raises(ConflictError, match=r"not empty: there is dagapp\.dag_definitions"):
        restore(backup, target)
    with pytest.raises(ConflictError, match="something in"):
        back_up(unchanged_source, backup)


def test_another_key_in_the_data_folder_is_refused(target: Place, backup: FolderDepot) -> None:
    target.data.mkdir()
    (target.data / "link.key").write_text("mine")
    with pytest.raises(ConflictError, match=r"link\.key is there already"):
        restore(backup, target)
    assert not (target.data / "admin.key").exists()


def test_a_backup_of_a_later_release_is_refused(target: Place, backup: FolderDepot) -> None:
    rewritten(backup, lambda manifest: manifest["inside"]["tables"][0]["columns"].append("invented"))
    with pytest.raises(ConflictError, match=r"'invented' of dagapp\.dag_definitions, which this release"):
        restore(backup, target)


def test_a_column_that_is_new_gets_its_default(unchanged_source: Place, target: Place, backup: FolderDepot) -> None:
    """A backup of an earlier release lacks the column."""

    def without_containers(manifest: dict[str, Any]) -> None:
        part = next(table for table in manifest["inside"]["tables"] if table["table"] == "app.platforms")
        place = part["columns"].index("containers")
        part["columns"].pop(place)
        lines = gzip.decompress((backup.root / part["path"]).read_bytes()).decode().strip("\n").split("\n")
        rows = [line.split("\t") for line in lines]
        content = "".join("\t".join(row[:place] + row[place + 1 :]) + "\n" for row in rows)
        repack(backup, part, content.encode())

    assert {"containers": ["uploads"]} in unchanged_source.rows("SELECT containers FROM app.platforms")
    rewritten(backup, without_containers)
    restore(backup, target)
    assert target.rows("SELECT DISTINCT containers FROM app.platforms") == [{"containers": []}]


def test_a_target_without_an_external_database_is_refused(backup: FolderDepot) -> None:
    from geomill.backup.restoration import require_fit

    with pytest.raises(SettingsError, match="target has none"):
        require_fit(read_manifest(backup), has_outside=False)
