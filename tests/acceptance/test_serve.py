"""`geomill serve` and `geomill catalogue`, as commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from geomill.domain.access.principal import Role
from geomill.store.pool import open_pool
from tests.acceptance.conftest import GEOMILL
from tests.integration.api.conftest import make_key
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import put_asset


def environ(folder: Path, inside: str, outside: str) -> dict[str, str]:
    return {
        **os.environ,
        "GEOMILL_DATA": str(folder),
        "GEOMILL_DATABASE_URL": inside,
        "GEOMILL_EXTERNAL_DATABASE_URL": outside,
        "GEOMILL_LOG_FORMAT": "text",
        "GEOMILL_METRICS_KEY": "a-key-of-the-tests-for-those-who-monitor",
    }


@contextmanager
def serving(zone: str, variables: dict[str, str]) -> Iterator[httpx.Client]:
    command = [GEOMILL, "serve", "--zone", zone, "--port", "0"]
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        match = None
        for line in process.stderr:
            if match := re.search(r"listening on (http://\S+)", line):
                break
        assert match is not None
        try:
            with httpx.Client(base_url=match[1], timeout=120) as client:
                deadline = time.monotonic() + 60
                while client.get("/health/ready").status_code != 200 and time.monotonic() < deadline:
                    time.sleep(0.2)
                yield client
        finally:
            process.terminate()
            process.stderr.read()
    assert process.returncode == 0


async def fill(url: str) -> None:
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        await put_asset(conn, "open", "ddh", "public", "ours", an_item())
        await put_asset(conn, "closed", "ddh", "ouo", "ours", an_item())


@pytest.mark.slow
def test_each_zone_is_served_alone(database: str, external_database: str, tmp_path: Path) -> None:
    asyncio.run(fill(database))
    variables = environ(tmp_path, database, external_database)
    reader = {"X-API-Key": asyncio.run(make_key(database, Role.READER)).reveal()}
    with serving("internal", variables) as client:
        assert client.get("/stac/search").json()["numberMatched"] == 1
        assert client.get("/stac/search", headers=reader).json()["numberMatched"] == 2
        assert client.get("/health/ready").json() == {"status": "ready", "reasons": []}
        assert client.get("/metrics").status_code == 401
        metrics = client.get("/metrics", headers=reader).text
        assert 'geomill_http_requests_total{method="GET",route="/stac/search",status="200"} 2.0' in metrics
        assert client.get("/api/assets", headers=reader).status_code == 404
    with serving("external", variables) as client:
        assert client.get("/stac/search", headers=reader).json()["numberMatched"] == 0
        assert client.get("/metrics").status_code == client.get("/metrics", headers=reader).status_code == 401
        monitoring = {"Authorization": f"Bearer {variables['GEOMILL_METRICS_KEY']}"}
        assert 'route="/stac/search"' in client.get("/metrics", headers=monitoring).text
        assert client.get("/health/ready").json() == {"status": "ready", "reasons": []}
        with psycopg.connect(external_database, autocommit=True) as conn:
            conn.execute("DROP TABLE external.assets")
        assert client.get("/health/ready").json()["reasons"] == [
            "the database refuses what requests need (SQLSTATE 42P01); run 'geomill doctor'"
        ]
        (reason,) = client.get("/health/ready").json()["reasons"]
        assert "the table external.assets is missing" in reason


def command(variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GEOMILL, *words], env=variables, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_catalogue_in_which_somebody_wrote_is_found_out_and_made_anew(
    database: str, external_database: str, tmp_path: Path
) -> None:
    asyncio.run(fill(database))
    variables = environ(tmp_path, database, external_database)
    assert command(variables, "catalogue", "check").stdout == "2 items\nall of them agree with their assets\n"
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("UPDATE pgstac.items SET content = content || '{\"x\": 1}' WHERE id = 'open'")
        conn.execute("DELETE FROM pgstac.items WHERE id = 'closed'")
    check = command(variables, "catalogue", "check", "--json")
    assert (check.returncode, json.loads(check.stdout)) == (
        1,
        {
            "sound": False,
            "expected": 2,
            "wanted": 2,
            "missing": 1,
            "strays": 0,
            "different": 1,
            "pending": 0,
            "miscounted": 1,
            "damage": [],
        },
    )
    assert command(variables, "catalogue", "rebuild").stdout == "2 items\n"
    assert command(variables, "catalogue", "check").returncode == 0


@pytest.mark.parametrize("zone", ["external"])
@pytest.mark.slow
def test_without_its_database_a_zone_is_not_served(database: str, tmp_path: Path, zone: str) -> None:
    variables = environ(tmp_path, database, "")
    del variables["GEOMILL_EXTERNAL_DATABASE_URL"]
    done = command(variables, "serve", "--zone", zone, "--port", "0")
    assert done.returncode != 0
    assert "GEOMILL_EXTERNAL_DATABASE_URL" in done.stderr
