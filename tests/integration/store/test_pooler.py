"""PgBouncer between geomill and the server: in session mode everything works, in transaction mode nothing starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from geomill.cli.context import make_ready
from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.states import JobStatus
from geomill.errors import DatabaseUnfit
from geomill.store.pool import open_pool
from tests.integration.engine.platform import EnginePlatform, library
from tests.servicebus.running import free_port

pytestmark = pytest.mark.skipif(
    shutil.which("pgbouncer") is None, reason="pgbouncer is not installed (script/setup --tests installs it)"
)


@contextmanager
def pooler(database: str, mode: str) -> Iterator[str]:
    """Runs PgBouncer before the database. Yields the URL through it."""
    with tempfile.TemporaryDirectory(prefix="gm-pooler-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # it does not run as root
        yield from _running(Path(folder), database, mode)


def _running(folder: Path, database: str, mode: str) -> Iterator[str]:
    parts, port = conninfo_to_dict(database), free_port()
    users = folder / "users.txt"
    users.write_text(f'"{parts["user"]}" "{parts["password"]}"\n')
    server = f"host={parts['host']} port={parts['port']}"
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = {server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = plain\nauth_file = {users}\npool_mode = {mode}\ndefault_pool_size = 40\n"
        "ignore_startup_parameters = extra_float_digits,options\n"
    )
    command = [shutil.which("pgbouncer") or "", str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        url = f"postgresql://{parts['user']}:{parts['password']}@127.0.0.1:{port}/{parts['dbname']}"
        try:
            _wait(url, folder / "log")
            yield url
        finally:
            process.kill()


def _wait(url: str, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return


async def test_in_session_mode_jobs_run_and_a_dead_worker_is_noticed(database: str) -> None:
    with pooler(database, "session") as url:
        await make_ready(url, private=False)
        async with open_pool(url, size=4, hot=True) as pool:
            platform = EnginePlatform(url, pool, library())
            platform.orchestrator(scan_seconds=0.2)
            first = platform.worker(queues=(LIGHT_QUEUE,))
            assert (await platform.run("hello_world", {"name": "Ada"})).status is JobStatus.COMPLETED
            await platform.crash(first)
            platform.worker(queues=(LIGHT_QUEUE,))
            assert (await platform.run("echo_test")).status is JobStatus.COMPLETED
            await platform.shutdown()


async def test_transaction_mode_is_refused_with_a_remedy(database: str) -> None:
    with pooler(database, "transaction") as url:
        with pytest.raises(DatabaseUnfit, match="pooler in transaction mode") as caught:
            await make_ready(url, private=False)
        assert "pool_mode = session" in caught.value.remedy


async def test_the_server_itself_is_not_taken_for_one(database: str) -> None:
    await make_ready(database, private=False)
