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

from geomill.catalogue.databases import migrate_external
from geomill.cli import private
from geomill.cli.context import make_ready
from geomill.domain.access.database_role import DatabaseRole
from geomill.embedded import Cluster
from tests.conftest import FOLDER

LOCAL = "postgresql.local.conf"
NOT_DURABLE = "fsync = off\nfull_page_writes = off\n"
"""Settings for a server that no power failure hits. A test may kill it: the system still has what it wrote."""


def copy_prepared(data: Path, *, durable: bool = False) -> None:
    """Make `data` a data folder whose private database is migrated and stopped. With `durable` it writes to the disk as
    the database of a user does, and more slowly."""
    if FOLDER in os.environ:
        data.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", f"{_prepared()}/.", str(data)], check=True)
    else:  # outside of a test run, as in script/chaos
        make_migrated(data)
    (data / "postgres" / "port").unlink()  # several copies may run at once
    if not durable:
        (data / "postgres" / LOCAL).write_text(NOT_DURABLE)


def _prepared() -> Path:
    """The folder to copy. The test process that needs it first makes it; the others wait."""
    run = Path(os.environ[FOLDER])
    data = run / "prepared"
    with (run / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not data.exists():
            draft = run / "preparing"
            make_migrated(draft)
            draft.rename(data)
    return data


def make_migrated(data: Path) -> None:
    """Make a data folder as the first start of `geomill up` does."""
    with Cluster(data, settings={"fsync": "off"}) as cluster:
        private.prepare(cluster)
        asyncio.run(make_ready(cluster.url(role=DatabaseRole.OWNER), private=True))
        outside = cluster.url(private.EXTERNAL_DATABASE, role=DatabaseRole.OWNER)
        asyncio.run(migrate_external(outside))
