"""The pages on backups are followed to the letter: their commands are run in their order, in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from geomill.embedded import Cluster, find
from tests.acceptance.conftest import GEOMILL, Geomill

pytestmark = pytest.mark.slow
PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def commands(page: str) -> str:
    text = (PAGES / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```bash\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    return "\n".join(line.strip() for block in blocks for line in block.splitlines())


@pytest.fixture
def folder(prepared_data: Path, geomill: Geomill) -> Iterator[Path]:
    """A folder with a platform in `./data` that has run a job."""
    home = prepared_data.parent
    done = geomill("--data", str(prepared_data), "jobs", "submit", "hello_world", "--wait")
    assert done.code == 0, done.err
    yield home
    for name in ("restored", "newer", "moved"):
        Cluster(home / name).stop("immediate")


def follow(script: str, home: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    path = f"{Path(GEOMILL).parent}:{find().folder}:{clean['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=home,
        env={**clean, "PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def jobs(geomill: Geomill, data: Path, **environ: str) -> list[str]:
    done = geomill("--data", str(data), "jobs", "list", "--json", **environ)
    assert done.code == 0, done.err
    return [job["job_id"] for job in done.json]


def test_back_up_and_restore(folder: Path, geomill: Geomill) -> None:
    before = jobs(geomill, folder / "data")
    printed = follow(commands("back-up-and-restore.md"), folder)
    assert "the backup is complete and unchanged" in printed
    assert "up to date" in printed
    assert jobs(geomill, folder / "restored") == before != []


def test_upgrade_postgresql(folder: Path, geomill: Geomill) -> None:
    before = jobs(geomill, folder / "data")
    printed = follow(commands("upgrade-postgresql.md"), folder)
    assert f"PostgreSQL {find().major}." in printed
    assert jobs(geomill, folder / "newer") == before != []


@pytest.fixture
def own_server(folder: Path) -> Iterator[Cluster]:
    """A server of one's own, on which nothing of geomill is."""
    cluster = Cluster(folder / "server", settings={"fsync": "off"})
    cluster.start()
    yield cluster
    cluster.stop("immediate")


def test_move_to_your_own_server(folder: Path, own_server: Cluster, geomill: Geomill) -> None:
    before = jobs(geomill, folder / "data")
    administrator = own_server.url("postgres", tcp=True)
    host, password = administrator.rpartition("@")[2].partition("/")[0], "a password for tests"
    owner = f"postgresql://geomill_owner:{quote(password)}@{host}"
    script = commands("move-to-your-own-server.md")
    script = script.replace("postgresql://administrator@db.internal/postgres", administrator)
    script = script.replace("postgresql://geomill_owner@db.internal", owner)
    prepared, restoring = script.split("export GEOMILL_DATABASE_URL", 1)
    with psycopg.connect(administrator, autocommit=True) as admin:
        admin.execute("DROP DATABASE geomill")  # the test's server has one; the page's has not
        follow(prepared, folder)
        admin.execute(f"ALTER ROLE geomill_owner PASSWORD '{password}'")  # type: ignore[arg-type]
    printed = follow("export GEOMILL_DATABASE_URL" + restoring, folder)
    assert "up to date" in printed
    urls = {"GEOMILL_DATABASE_URL": f"{owner}/geomill", "GEOMILL_EXTERNAL_DATABASE_URL": f"{owner}/geomill_external"}
    assert jobs(geomill, folder / "moved", **urls) == before != []
    assert not (folder / "moved" / "postgres").exists(), "no private server was made"
    shutil.rmtree(folder / "backups")
