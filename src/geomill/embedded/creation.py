"""Makes the cluster: beside its final place, complete with its database, then moved there by one rename.

So a `pgdata` that exists is a whole cluster, however the making was interrupted, and what an interrupted one leaves
behind is told by its name and can be removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from geomill.embedded.account import Account
from geomill.embedded.binaries import Binaries
from geomill.embedded.config import INCLUDES
from geomill.embedded.place import DataPlace
from geomill.errors import EmbeddedError

ROLE = "geomill"
DATABASE = "geomill"
_DRAFT = "making-"
NEEDED_BYTES = 300_000_000
"""On the disk of a new cluster: with our schema in two databases it has about 200 MB, log included."""


def version_of(pgdata: Path) -> int | None:
    """The major version of the cluster in `pgdata`, or None when there is none yet."""
    version, control = pgdata / "PG_VERSION", pgdata / "global" / "pg_control"
    if version.is_file() and control.is_file():
        text = version.read_text(encoding="utf-8", errors="replace").strip()
        if text.isdecimal():
            return int(text)
    elif not (version.exists() or control.exists()):
        return None
    raise EmbeddedError(
        f"the private database in {pgdata} is damaged: its PG_VERSION or global/pg_control is missing or unreadable",
        remedy="restore the folder from a backup, or move it away to begin with an empty database",
    )


def create(place: DataPlace, binaries: Binaries, account: Account, settings: Mapping[str, str]) -> None:
    """The caller holds the lock."""
    _clear_away(place)
    _require_space(place.home)
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=place.home))
    try:
        account.own(draft)
        fsync = settings.get("fsync", "on")
        _initdb(draft, place.make_password(), binaries, account, fsync)
        _make_database(draft / "pgdata", binaries, account, fsync)
        (draft / "pgdata").rename(place.pgdata)
        _sync(place.home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise EmbeddedError(
            f"the disk of {folder} has {free / 1e6:.0f} MB free, and a new database needs {NEEDED_BYTES / 1e6:.0f} MB",
            remedy="free some space, or choose another folder with --data",
        )


def locale_options(major: int, platform: str = sys.platform) -> list[str]:
    """UTF-8 with plain byte order, which no upgrade of the C library can change under the indexes."""
    if major >= 17:
        return ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    return ["--locale=C", f"--lc-ctype={'en_US' if platform == 'darwin' else 'C'}.UTF-8"]


def check(done: subprocess.CompletedProcess[str], doing: str, log: str = "") -> None:
    """Raises with the last lines that the program, or the server, had to say."""
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr + log).strip().splitlines()[-12:])
        raise EmbeddedError(
            f"{doing} failed with exit code {done.returncode}:\n{said}\n",
            remedy="see the lines above; often it is a full disk or a setting in postgresql.local.conf",
        )


def _clear_away(place: DataPlace) -> None:
    for left in place.home.glob(f"{_DRAFT}*"):
        shutil.rmtree(left, ignore_errors=True)
    if place.pgdata.exists():
        # Not made by us, for ours appear whole. It holds no cluster, but may hold something that somebody misses.
        place.pgdata.rename(place.pgdata.with_name(f"pgdata.incomplete-{time.time_ns()}"))


def _initdb(draft: Path, password: str, binaries: Binaries, account: Account, fsync: str) -> None:
    secret = draft / "password"
    # A copy, because the account may not be able to read the caller's own file.
    secret.touch(mode=0o600, exist_ok=False)
    secret.write_text(password + "\n", encoding="utf-8")
    account.own(secret)
    command = [binaries.initdb, f"--pgdata={draft / 'pgdata'}", f"--username={ROLE}", f"--pwfile={secret}"]
    command += ["--auth-local=scram-sha-256", "--auth-host=scram-sha-256", "--encoding=UTF8", "--data-checksums"]
    command += locale_options(binaries.major)
    command += ["--no-sync"] if fsync == "off" else []
    check(account.run(command), f"initdb in {draft}")
    secret.unlink()


def _make_database(pgdata: Path, binaries: Binaries, account: Account, fsync: str) -> None:
    # In single-user mode, so that no cluster is ever seen without its database.
    command = [binaries.postgres, "--single", "-D", str(pgdata), "-c", f"fsync={fsync}", "-c", "exit_on_error=on"]
    check(account.run([*command, "postgres"], stdin=f"CREATE DATABASE {DATABASE}\n"), "making the database")
    descriptor = os.open(pgdata / "postgresql.conf", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
    with open(descriptor, "a", encoding="utf-8") as file:  # noqa: PTH123  a descriptor has no path
        file.write(INCLUDES)
        file.flush()
        os.fsync(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
