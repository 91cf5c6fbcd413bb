"""A data folder with a migrated private database, made once for each test run and copied for each test.

To make one takes several seconds of PostgreSQL, PostGIS and pgstac; to copy one takes half a second. Only tests about
the first start need a new one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
from pathlib import Path

from geomill.catalog.databases import migrate_external
from geomill.cli import private
from geomill.cli.context import make_ready
from geomill.domain.database_role import DatabaseRole
from geomill.embedded import Cluster
from tests.conftest import FOLDER

SETTINGS = """\
fsync = off
full_page_writes = off
min_wal_size = 32MB
"""
"""Of a server that no power failure hits: the test may kill it, and what it has written is still there."""


def relax(data: Path) -> None:
    """Let the private database of a data folder, which may not exist yet, spare the disk."""
    control = data / "postgres"
    control.mkdir(parents=True, exist_ok=True)
    for folder in (data, control):
        folder.chmod(0o755)
    (control / "postgresql.local.conf").write_text(SETTINGS)


def copy_prepared(data: Path) -> None:
    """Make `data` a data folder whose private database is migrated and stopped."""
    copy = ["cp", "-a", "--reflink=auto", str(_prepared()), str(data)]
    subprocess.run(copy, check=True)
    (data / "postgres" / "port").unlink()  # several copies may run at once


def _prepared() -> Path:
    """Made by the test process that comes first; the others wait for it."""
    run = Path(os.environ[FOLDER])
    data = run / "prepared"
    with (run / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not data.exists():
            draft = run / "preparing"
            _make(draft)
            draft.rename(data)
    return data


def _make(data: Path) -> None:
    """As the first start of `geomill up` does."""
    relax(data)
    with Cluster(data) as cluster:
        private.prepare(cluster)
        asyncio.run(make_ready(cluster.url(role=DatabaseRole.OWNER), private=True))
        outside = cluster.url(private.EXTERNAL_DATABASE, role=DatabaseRole.OWNER)
        asyncio.run(migrate_external(outside))
