"""A backup of a busy platform, the loss of everything, and a restoration: what was there is there again."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from geomill.cli.private import EXTERNAL_DATABASE
from geomill.embedded import Cluster
from tests.acceptance.conftest import Geomill
from tests.acceptance.running import PATIENCE, eventually, ready, show_key
from tests.integration.raster import sources as rasters
from tests.integration.vector import sources as vectors

pytestmark = pytest.mark.slow


@dataclass
class Works:
    """A running platform, with a caller who has its administrator's key."""

    data: Path
    client: httpx.Client
    geomill: Geomill

    def run(self, *arguments: str) -> Any:
        done = self.geomill(*arguments, "--json", GEOMILL_DATA=str(self.data))
        assert done.code == 0, done.err + done.out
        return done.json

    def publish(self, file: Path, data_type: str, name: str, *more: str, wait: bool = True) -> Any:
        refs = ("--ref", f"dataset_id={name}", "--ref", "resource_id=all", "--ref", "version_id=v1")
        waiting = ("--wait",) if wait else ()
        return self.run("assets", "submit", str(file), "--data-type", data_type, *refs, *more, *waiting)

    def rows(self, query: str, database: str = "geomill") -> list[dict[str, Any]]:
        with psycopg.connect(Cluster(self.data).url(database), row_factory=dict_row) as conn:
            return conn.execute(query).fetchall()  # type: ignore[arg-type]


@contextmanager
def works(data: Path, geomill: Geomill) -> Iterator[Works]:
    with ready(data) as (_, client):
        show_key(client, data)
        client.timeout = httpx.Timeout(PATIENCE)
        yield Works(data, client, geomill)


class Load:
    """Somebody who submits jobs: ten in a second until the platform is busy, then two, so that a slow machine need not
    end more of them."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._stop = threading.Event()
        self.accepted = 0
        self.busy = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        order = {"workflow_id": "multi_phase", "inputs": {"phases": 4}}
        while not self._stop.is_set():
            body = order if self.accepted % 3 == 0 else {"workflow_id": "hello_world"}
            answer = self._client.post("/api/v1/jobs", json=body)
            self.accepted += answer.status_code == 202
            if self.accepted > 20:
                self.busy.set()
            self._stop.wait(0.5 if self.busy.is_set() else 0.1)


SETTLED = {
    "assets": "SELECT to_jsonb(a) AS row FROM app.geospatial_assets AS a WHERE dataset_id IN {names} ORDER BY asset_id",
    "revisions": """SELECT to_jsonb(r) AS row FROM app.asset_revisions AS r JOIN app.geospatial_assets AS a
                    USING (asset_id) WHERE a.dataset_id IN {names} ORDER BY r.asset_id, r.revision""",
    "audit": """SELECT to_jsonb(u) AS row FROM app.asset_audit AS u JOIN app.geospatial_assets AS a USING (asset_id)
                WHERE a.dataset_id IN {names} ORDER BY u.audit_id""",
    "items": """SELECT jsonb_build_array(id, collection, st_asewkt(geometry), datetime, content, private) AS row
                FROM pgstac.items ORDER BY collection, id""",
    "collections": "SELECT content AS row FROM pgstac.collections ORDER BY id",
    "keys": "SELECT to_jsonb(k) - 'last_used_at' AS row FROM app.api_keys AS k ORDER BY key_id",
}
OUTSIDE = {
    "rows": "SELECT to_jsonb(e) AS row FROM external.assets AS e ORDER BY asset_id",
    "items": SETTLED["items"],
    "collections": SETTLED["collections"],
}
NAMES = "('island', 'fields')"


def served(client: httpx.Client, path: str) -> httpx.Response:
    """Services come up a little after their gateway."""
    answers: list[httpx.Response] = []
    eventually(lambda: answers.append(client.get(path)) or answers[-1].status_code != 503, path)
    assert answers[-1].status_code == 200, f"{path}: {answers[-1].text}"
    return answers[-1]


def memory(place: Works, raster: str, layer: str) -> dict[str, Any]:
    """All that can be seen of the settled assets, in the database and over HTTP."""
    remembered: dict[str, Any] = {
        name: [row["row"] for row in place.rows(query.replace("{names}", NAMES))] for name, query in SETTLED.items()
    }
    for name, query in OUTSIDE.items():
        remembered[f"outside {name}"] = [row["row"] for row in place.rows(query, EXTERNAL_DATABASE)]
    table = remembered["assets"][0]["table_name"] or remembered["assets"][1]["table_name"]
    remembered["table"] = place.rows(f"SELECT to_jsonb(t) AS row FROM geo.{table} AS t ORDER BY 1")
    remembered["indexes"] = place.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'geo' ORDER BY 1")
    remembered["rights"] = place.rows("SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'geo' ORDER BY 1")
    for path in (
        f"/raster/assets/{raster}/preview.png",
        f"/raster/assets/{raster}/WebMercatorQuad/tilejson.json",
        f"/vector/collections/{layer}/items?limit=50",
        f"/vector/collections/{layer}/tiles/WebMercatorQuad/0/0/0",
        f"/stac/search?ids={remembered['assets'][0]['stac_item_id']}",
    ):
        answer = served(place.client, path)
        body = answer.content.replace(str(place.client.base_url).rstrip("/").encode(), b"")
        remembered[path] = body if b"timeStamp" not in body else json.loads(body)["features"]
    return remembered


def open_jobs(place: Works) -> int:
    query = """SELECT (SELECT count(*) FROM dagapp.dag_jobs WHERE completed_at IS NULL)
                    + (SELECT count(*) FROM dagapp.dag_queue) AS open"""
    return int(place.rows(query)[0]["open"])


def destroy(data: Path) -> None:
    Cluster(data).stop("immediate")
    location = data / "postgres" / "location"
    if location.exists():
        shutil.rmtree(location.read_text().strip())
    shutil.rmtree(data)


def test_a_busy_platform_is_backed_up_destroyed_and_restored(
    prepared_data: Path, geomill: Geomill, tmp_path: Path
) -> None:
    data = prepared_data
    backup, restored = data.parent / "backup", data.parent / "restored"
    island, fields = tmp_path / "island.tif", tmp_path / "fields.gpkg"
    island.write_bytes(rasters.rgb(300).encode())
    vectors.write(fields, vectors.table(vectors.squares(500)), kind="Polygon")

    with works(data, geomill) as place:
        raster = place.publish(island, "raster", "island")["asset_id"]
        exported = place.run("assets", "approve", raster, "--clearance", "public")
        assert place.run("assets", "status", exported["export_job_id"], "--wait")["status"] == "completed"
        layer = place.publish(fields, "vector", "fields")["asset_id"]
        place.publish(fields, "vector", "fields", "--overwrite")
        place.run("assets", "approve", layer, "--clearance", "ouo")
        before = memory(place, raster, layer)
        with Load(place.client) as load:
            assert load.busy.wait(PATIENCE)
            moving = tmp_path / "moving.gpkg"
            vectors.write(moving, vectors.table(vectors.squares(20_000)), kind="Polygon")
            place.publish(moving, "vector", "moving", "--option", "chunk_rows=200", wait=False)
            manifest = place.run("backup", str(backup))
            after_backup = load.accepted
            eventually(lambda: load.accepted > after_backup, "submissions after the backup")
        assert memory(place, raster, layer) == before
    destroy(data)

    verified = geomill("backup", "verify", str(backup), "--json")
    assert (verified.code, verified.json["sound"], verified.json["extra"]) == (0, True, [])
    done = geomill("--data", str(restored), "restore", str(backup), "--sha256", manifest["sha256"], "--json")
    try:
        assert done.code == 0, done.err + done.out
        assert done.json["sound"]
        assert done.json["objects"]["missing"] == done.json["objects"]["different"] == []
        assert done.json["jobs"]["jobs"] > 0, "some were under way"
        assert_everything_is_back(Works(restored, httpx.Client(), geomill), before, raster, layer)
        again = geomill("--data", str(restored), "restore", str(backup))
        assert again.code == 1
        assert "not empty" in again.err
    finally:
        Cluster(restored).stop("immediate")


def assert_everything_is_back(place: Works, before: dict[str, Any], raster: str, layer: str) -> None:
    with works(place.data, place.geomill) as place:
        assert memory(place, raster, layer) == before
        eventually(lambda: open_jobs(place) == 0, "jobs that were under way have ended")
        failed = "SELECT workflow_id, status, error_message FROM dagapp.dag_jobs WHERE status <> 'completed'"
        assert place.rows(failed) == []
        twice = place.rows(
            """SELECT job_id, node_id, item_index FROM dagapp.dag_task_results WHERE status = 'completed'
               GROUP BY 1, 2, 3 HAVING count(*) > 1"""
        )
        assert twice == []
        query = "SELECT processing_status, table_name FROM app.geospatial_assets WHERE dataset_id = 'moving'"
        for asset in place.rows(query):
            assert asset["processing_status"] == "completed"
            assert place.rows(f"SELECT count(*) AS n FROM geo.{asset['table_name']}") == [{"n": 20_000}]
        assert place.run("catalogue", "check")["sound"]
        assert place.run("db", "status")["up_to_date"]
        assert place.geomill("--data", str(place.data), "doctor").code == 0
