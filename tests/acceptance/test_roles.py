"""Each process has a database role of its own and knows only its own settings. A plain owner of the databases can set
everything up."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest

from geomill.catalogue.databases import migrate_external
from geomill.domain.access.database_role import DatabaseRole
from geomill.embedded import Cluster
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from tests.acceptance.conftest import Geomill
from tests.acceptance.installation import Installation, installation_in
from tests.acceptance.running import children, eventually
from tests.integration.raster.sources import SyntheticRaster
from tests.integration.vector import sources
from tests.owners import owned_database

pytestmark = pytest.mark.slow
RASTER = ("--data-type", "raster", "--ref", "dataset_id=d", "--ref", "resource_id=pixels", "--ref", "version_id=v1")
VECTOR = ("--data-type", "vector", "--ref", "dataset_id=d", "--ref", "resource_id=shapes", "--ref", "version_id=v1")


def outside_url(installation: Installation) -> str:
    log = (installation.data.parent / "log").read_text()
    match = re.search(r"public maps, open to everybody: (http://\S+)/viewer/", log)
    assert match is not None, log
    return match[1]


def publish_both(installation: Installation) -> dict[str, Any]:
    """A raster and a vector asset, processed, approved as public and copied outside."""
    pixels, shapes = installation.data.parent / "pixels.tif", installation.data.parent / "shapes.gpkg"
    pixels.write_bytes(SyntheticRaster(np.arange(256 * 256, dtype=np.uint16).reshape(1, 256, 256)).encode())
    sources.write(shapes, sources.table(sources.squares(50)), kind="Polygon")
    submitted = {
        "raster": installation.run("submit", str(pixels), *RASTER, "--wait"),
        "vector": installation.run("submit", str(shapes), *VECTOR, "--wait"),
    }
    for asset in submitted.values():
        assert asset["status"] == "completed", asset
        installation.ended(installation.run("approve", asset["asset_id"], "--clearance", "public"))
    return {kind: asset["asset_id"] for kind, asset in submitted.items()}


def look(base: str, published: dict[str, Any]) -> None:
    """Call the services without any key."""
    with httpx.Client(base_url=base, timeout=60) as client:
        assert client.get("/stac/search").json()["numberMatched"] == 2
        assert client.get("/stac/search", params={"filter": "eo:cloud_cover < 5"}).status_code == 200
        items = client.get(f"/vector/collections/{published['vector']}/items").json()
        assert items["numberMatched"] == 50
        preview = client.get(f"/raster/assets/{published['raster']}/preview.png")
        assert (preview.status_code, preview.headers["content-type"]) == (200, "image/png")


def live_a_life(installation: Installation) -> None:
    published = publish_both(installation)
    look(str(installation.client.base_url), published)
    look(outside_url(installation), published)
    for asset_id in published.values():
        installation.run("unpublish", asset_id, "--delete-data", "--reason", "over")
    eventually(lambda: not installation.zone("silver") and not installation.outside(), "nothing is left")


def test_a_role_that_merely_owns_its_databases_is_enough(server: str, data: Path, geomill: Geomill) -> None:
    with owned_database(server) as inside, owned_database(server) as outside:
        settings = {"GEOMILL_DATABASE_URL": inside.url, "GEOMILL_EXTERNAL_DATABASE_URL": outside.url}
        refused = geomill("db", "migrate", **settings)
        assert refused.code == 1
        inside.prepare(*re.findall(r"^    (\S.*);$", refused.err, re.MULTILINE))
        refused = geomill("db", "migrate", **settings)
        outside.prepare(*re.findall(r"^    (\S.*);$", refused.err, re.MULTILINE))
        migrated = geomill("db", "migrate", **settings)
        assert migrated.code == 0, migrated.err
        assert geomill("db", "status", **settings).out.endswith("up to date\n")
        with installation_in(data, geomill, **settings) as installation:
            live_a_life(installation)
            rebuilt = geomill("catalogue", "rebuild", **settings)
            assert rebuilt.code == 0, rebuilt.err


CALLBACK, LINK = "a callback secret for tests", "a link secret for tests, which is long"
SECRETS = {"GEOMILL_CALLBACK_SECRET": CALLBACK, "GEOMILL_LINK_SECRET": LINK, "PGPASSWORD": "of the internal database"}


def environ_of(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def sessions(data: Path) -> set[tuple[str, str, str]]:
    """Return role, database and application name of each session, except the sessions of this test."""
    with psycopg.connect(Cluster(data).url("postgres")) as conn:
        return set(
            conn.execute(
                "SELECT usename, datname, application_name FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchall()
        )


def test_each_process_is_a_role_of_its_own_and_knows_what_it_needs(prepared_data: Path, geomill: Geomill) -> None:
    data = prepared_data
    with installation_in(data, geomill, **SECRETS) as installation:
        live_a_life(installation)

        connected = sessions(data)
        assert {role for role, _, _ in connected} <= set(DatabaseRole) - {DatabaseRole.OWNER}
        named = {name: role for role, _, name in connected}
        assert named["geomill orchestrator"] == named["geomill worker"] == DatabaseRole.ENGINE
        assert named["geomill gateway"] == DatabaseRole.GATEWAY
        assert {(role, where) for role, where, name in connected if name in ("geomill stac", "geomill vectors")} == {
            (DatabaseRole.READER, "geomill"),
            (DatabaseRole.EXTERNAL, "geomill_external"),
        }

        environments = {kind: environ_of(pid) for kind, pid in children(installation.process.pid).items()}
        assert {kind for kind, environ in environments.items() if CALLBACK in environ.values()} == {"orchestrator"}
        assert {kind for kind, environ in environments.items() if LINK in environ.values()} == {"gateway"}
        superuser = (data / "postgres" / "password").read_text().strip()
        for environ in environments.values():
            assert superuser not in str(environ)
        outside = environments["serve"]
        assert {name for name in outside if name.startswith(("GEOMILL_", "PG"))} == {
            "GEOMILL_EXTERNAL_DATABASE_URL", "GEOMILL_EXTERNAL", "GEOMILL_LOG_FORMAT",
        }  # fmt: skip
        with pytest.raises(psycopg.OperationalError, match="does not have CONNECT privilege"):
            psycopg.connect(outside["GEOMILL_EXTERNAL_DATABASE_URL"].replace("/geomill_external?", "/geomill?"))
        doctor = geomill("doctor", GEOMILL_DATA=str(data))
        assert doctor.code == 0, doctor.out


def make_as_an_older_release_did(data: Path) -> None:
    """Everything belongs to the server's superuser, and there is no other role of ours."""
    with Cluster(data) as cluster:
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as admin:
            admin.execute("CREATE DATABASE geomill_external")
        asyncio.run(migrate_all(cluster))
        with psycopg.connect(cluster.url()) as conn:
            conn.execute("ALTER FUNCTION app.follow_job() SET geomill.writer = 'orchestrator'")
            conn.execute("CREATE SCHEMA geo")
            conn.execute("CREATE SCHEMA geo_staging")
            conn.execute("CREATE TABLE geo.older (id bigint)")
            owners = conn.execute("SELECT DISTINCT rolname FROM pg_roles WHERE rolname LIKE 'geomill%'").fetchall()
            assert owners == [("geomill",)]


async def migrate_all(cluster: Cluster) -> None:
    async with await connect(cluster.url()) as conn:
        await migrate(conn)
    await migrate_external(cluster.url("geomill_external"))


def test_a_data_folder_of_an_older_release_goes_on_with_the_roles(data: Path, geomill: Geomill) -> None:
    make_as_an_older_release_did(data)
    with installation_in(data, geomill) as installation:
        live_a_life(installation)
        assert {role for role, _, _ in sessions(data)} <= set(DatabaseRole) - {DatabaseRole.OWNER}
        with psycopg.connect(Cluster(data).url()) as conn:
            rows = conn.execute(
                "SELECT DISTINCT n.nspname, pg_get_userbyid(c.relowner) FROM pg_class AS c JOIN pg_namespace AS n"
                " ON n.oid = c.relnamespace WHERE n.nspname IN ('app', 'dagapp', 'catalogue', 'pgstac', 'geo')"
            ).fetchall()
        assert set(rows) == {
            ("app", "geomill_owner"), ("dagapp", "geomill_owner"), ("catalogue", "geomill_owner"),
            ("pgstac", "pgstac_admin"), ("geo", "geomill_loader"),
        }  # fmt: skip


def test_the_first_commands_of_a_folder_may_come_at_once(data: Path, geomill: Geomill) -> None:
    with ThreadPoolExecutor() as pool:
        commands = [pool.submit(geomill, "jobs", "list", "--json", GEOMILL_DATA=str(data)) for _ in range(3)]
    for command in commands:
        assert (command.result().code, command.result().out) == (0, "[]\n"), command.result().err
    with Cluster(data) as cluster, psycopg.connect(cluster.url()) as conn:
        assert conn.execute("SELECT has_table_privilege('geomill_engine', 'dagapp.dag_jobs', 'UPDATE')").fetchone() == (
            True,
        )
