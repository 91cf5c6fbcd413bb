"""The user account that runs the server.

PostgreSQL refuses to run as root. If the caller is root, the server runs as `postgres`, or as `nobody` if there is no
such user. An existing cluster keeps its owner. Only root and the owner can use a cluster.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from geomill.errors import EmbeddedError

_UNPRIVILEGED = ("postgres", "nobody")
# PG* would redirect the server's programs, and PROJ_* or GDAL_* of a Python wheel would mislead PostGIS.
_PASSED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int
    dropped: bool = False

    @classmethod
    def of(cls, pgdata: Path) -> Account:
        """Return the account for the cluster in `pgdata`, which may not exist yet."""
        owner = pgdata.stat().st_uid if pgdata.exists() else None
        if os.geteuid() == 0:
            return cls._named(owner) if owner else cls._unprivileged()
        if owner not in (None, os.geteuid()):
            name = cls._named(owner).name
            raise EmbeddedError(
                f"the private database in {pgdata} belongs to the user {name}",
                remedy=f"run as {name} or as root, or choose another data folder with GEOMILL_DATA",
            )
        return cls(str(os.geteuid()), os.geteuid(), os.getegid())

    @classmethod
    def _named(cls, uid: int | None) -> Account:
        assert uid is not None
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            return cls(str(uid), uid, uid, dropped=True)
        return cls(entry.pw_name, uid, entry.pw_gid, dropped=True)

    @classmethod
    def _unprivileged(cls) -> Account:
        for name in _UNPRIVILEGED:
            try:
                return cls._named(pwd.getpwnam(name).pw_uid)
            except KeyError:
                continue
        raise EmbeddedError(
            "PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody",
            remedy="run as another user",
        )

    def run(self, command: Sequence[str], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as this account. The caller must check the exit code."""
        return subprocess.run(  # noqa: S603  system programs with fixed arguments
            command,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            env=_environment(),
            user=self.uid if self.dropped else None,
            group=self.gid if self.dropped else None,
            extra_groups=[] if self.dropped else None,
        )

    def can_enter(self, folder: Path) -> bool:
        """Try to enter the folder. The mode bits alone do not show access lists and read-only mounts."""
        return self.run(["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)]).returncode == 0

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.own(folder)

    def own(self, path: Path) -> None:
        if self.dropped:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def _environment() -> dict[str, str]:
    # LC_ALL gives messages in English, and macOS needs it to start the server.
    return {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ} | {"LC_ALL": "C"}
