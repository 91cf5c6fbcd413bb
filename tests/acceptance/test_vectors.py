"""The life of a vector asset, as people type it: `geomill up` and the real commands, with the tables looked at."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import shapely
from psycopg.rows import dict_row

from geomill.embedded import Cluster
from tests.acceptance.conftest import Geomill
from tests.acceptance.installation import Installation
from tests.acceptance.running import children, eventually, ready, show_key
from tests.integration.vector import sources

pytestmark = pytest.mark.slow
REFS = ("--ref", "dataset_id=IDN_roads", "--ref", "resource_id=parcels", "--ref", "version_id=v1.0")
STEM = "idn_roads_parcels_v10"


class VectorInstallation(Installation):
    def order(self, count: int, *more: str) -> Any:
        path = self.data.parent / "parcels.gpkg"
        path.unlink(missing_ok=True)
        sources.write(path, sources.table(sources.squares(count)), kind="Polygon")
        return self.run("submit", str(path), "--data-type", "vector", *REFS, *more)

    def rows(self, query: str) -> list[dict[str, Any]]:
        with psycopg.connect(Cluster(self.data).url(), row_factory=dict_row) as conn:
            return conn.execute(query).fetchall()  # type: ignore[arg-type]

    def tables(self, schema: str) -> set[str]:
        query = f"SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'r'"
        return {row["relname"] for row in self.rows(query)}

    def chunks(self) -> int:
        ledger = next((name for name in self.tables("geo_staging") if name.endswith("_chunks")), None)
        return int(self.rows(f"SELECT count(*) AS n FROM geo_staging.{ledger}")[0]["n"]) if ledger else 0


@pytest.fixture
def installation(prepared_data: Path, geomill: Geomill) -> Iterator[VectorInstallation]:
    with ready(prepared_data) as (process, client):
        show_key(client, prepared_data)
        yield VectorInstallation(process, prepared_data, geomill, client)


def test_a_whole_life(installation: VectorInstallation) -> None:
    path = installation.data.parent / "nowhere.csv"
    path.write_text("x,y\n500000,5000000\n")
    order = ("assets", "submit", str(path), "--data-type", "vector", "--ref", "dataset_id=nowhere", *REFS[2:], "--wait")
    refused = installation.geomill(*order, GEOMILL_DATA=str(installation.data))
    assert refused.code == 1
    assert "source_crs" in refused.err + refused.out
    assert installation.tables("geo") == set()

    first = installation.order(300, "--wait")
    asset_id = first["asset_id"]
    assert first["status"] == "completed"
    shown = installation.show(asset_id)
    assert (shown["table_name"], shown["served_revision"]) == (f"{STEM}_r1", 1)
    assert installation.rows(f"SELECT count(*) AS n FROM geo.{STEM}_r1") == [{"n": 300}]
    item = json.loads(next(data for name, data in installation.zone("silver").items() if name.endswith("item.json")))
    assert item["assets"]["features"]["href"] == f"/vector/collections/{asset_id}/items"
    assert shapely.from_geojson(json.dumps(item["geometry"])).covers(shapely.box(*item["bbox"]))

    second = installation.order(20_000, "--overwrite", "--option", "chunk_rows=500")
    eventually(lambda: installation.chunks() > 2, "some chunks")
    os.kill(children(installation.process.pid)["worker"], signal.SIGKILL)
    during = installation.show(asset_id)
    assert (during["table_name"], during["served_revision"], during["revision"]) == (f"{STEM}_r1", 1, 2)
    assert installation.tables("geo") == {f"{STEM}_r1"}, "nothing half made is visible"
    assert installation.run("status", second["request_id"], "--wait")["status"] == "completed"
    assert installation.run("show", asset_id)["table_name"] == f"{STEM}_r2"
    rows = installation.rows(f"SELECT count(*) AS n, count(DISTINCT number) AS once FROM geo.{STEM}_r2")
    assert rows == [{"n": 20_000, "once": 20_000}]
    assert installation.tables("geo_staging") == set()
    assert installation.tables("geo") == {f"{STEM}_r1", f"{STEM}_r2"}

    gone = installation.run("unpublish", asset_id, "--delete-data", "--reason", "over")
    eventually(lambda: not installation.tables("geo"), "no tables")
    assert gone["delete_job_id"]
    eventually(lambda: not installation.zone("silver"), "no files")


def test_a_download_too_large_for_an_answer_is_written_by_a_job(installation: VectorInstallation) -> None:
    """The command waits for the job. Gateway, engine and worker have database roles of their own."""
    asset_id = installation.order(300, "--wait")["asset_id"]
    with psycopg.connect(Cluster(installation.data).url()) as conn:
        columns = conn.execute(
            "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
            f" WHERE attrelid = 'geo.{STEM}_r1'::regclass AND attname <> 'gid' AND attnum > 0 AND NOT attisdropped"
        ).fetchone()
        assert columns
        names = columns[0]
        conn.execute(
            f"INSERT INTO geo.{STEM}_r1 (gid, {names})"  # type: ignore[arg-type]
            f" SELECT 1000 * n + gid, {names} FROM geo.{STEM}_r1, generate_series(1, 3400) AS n"
        )
    target = installation.data.parent / "all.csv"
    options = ("assets", "download", asset_id, str(target), "--format", "csv")
    done = installation.geomill(*options, GEOMILL_DATA=str(installation.data))
    assert done.code == 0, done.err
    assert "a job writes it" in done.err
    with target.open() as lines:
        assert sum(1 for _ in lines) == 1 + 300 * 3401
    installation.run("unpublish", asset_id, "--reason", "over")
    href = done.err.split("/vector/", 1)[1].split()[0]
    assert installation.client.get(f"/vector/{href}").status_code == 404
    eventually(
        lambda: not any(name.startswith("extracts/") for name in installation.zone("silver")), "the file is gone", 150
    )
