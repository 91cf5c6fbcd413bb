"""Finds the PostgreSQL server programs of the system.

No package on a Python index carries a PostGIS that works, so the system's own packages are used. Their folders are
rarely on PATH: Debian, the RPM packages and Homebrew each keep one folder per major version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from geomill.errors import EmbeddedError

OLDEST = 15
_PATTERNS = (
    "usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "usr/pgsql-*/bin",  # RPM packages of the PostgreSQL project
    "usr/libexec/postgresql*",  # Alpine
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
    "Applications/Postgres.app/Contents/Versions/*/bin",
    "usr/local/pgsql/bin",
    "usr/bin",  # Fedora, Arch
)
_INSTALL = {
    "apt-get": "apt-get install postgresql-{major}-postgis-3",
    "dnf": "dnf install postgresql-server postgis",
    "brew": "brew install postgresql@{major} postgis",
    "apk": "apk add postgresql{major} postgis",
    "pacman": "pacman -S postgresql postgis",
    "zypper": "zypper install postgresql{major}-server postgresql{major}-postgis",
}


@dataclass(frozen=True, slots=True)
class Binaries:
    folder: Path
    major: int
    postgis: bool

    @property
    def initdb(self) -> str:
        return str(self.folder / "initdb")

    @property
    def pg_ctl(self) -> str:
        return str(self.folder / "pg_ctl")

    @property
    def postgres(self) -> str:
        return str(self.folder / "postgres")


def find(major: int | None = None) -> Binaries:
    """Return the newest usable server, or that of version `major`, which an existing cluster needs."""
    return choose(installed(), major)


def choose(servers: Iterable[Binaries], major: int | None = None) -> Binaries:
    usable = [server for server in servers if server.major >= OLDEST]
    candidates = [server for server in usable if major in (None, server.major)]
    if not candidates and major is not None and usable:
        raise _wrong_version(major, usable)
    if not candidates:
        raise EmbeddedError(f"no PostgreSQL server of version {OLDEST} or newer was found", remedy=_remedy(major))
    best = max(candidates, key=lambda server: (server.postgis, server.major))
    if not best.postgis:
        message = f"PostgreSQL {best.major} in {best.folder} has no PostGIS"
        raise EmbeddedError(message, remedy=_remedy(best.major))
    return best


def installed() -> list[Binaries]:
    """Return every server of the system once."""
    folders = dict.fromkeys(path.resolve() for path in _folders())
    return [binaries for folder in folders if (binaries := inspect(folder)) is not None]


def inspect(folder: Path) -> Binaries | None:
    if not all(os.access(folder / name, os.X_OK) for name in ("initdb", "pg_ctl", "postgres")):
        return None
    major = parse_major(_output(str(folder / "postgres"), "--version"))
    if major is None:
        return None
    return Binaries(folder, major, any(_has_postgis(share) for share in _share_folders(folder, major)))


def parse_major(version: str) -> int | None:
    """Return the major version in `postgres (PostgreSQL) 15.18 (Debian …)` or `… 18beta1`."""
    match = re.search(r"\(PostgreSQL\) (\d+)", version)
    return int(match.group(1)) if match else None


def _folders() -> Iterator[Path]:
    # Resolve the program: a link on PATH leads to the folder that has all programs.
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent
    if shutil.which("pg_config") and (folder := _output("pg_config", "--bindir")):
        yield Path(folder)
    for pattern in _PATTERNS:
        yield from sorted(Path("/").glob(pattern), reverse=True)


def _share_folders(folder: Path, major: int) -> Iterator[Path]:
    config = folder / "pg_config"
    if config.exists() and (share := _output(str(config), "--sharedir")):
        yield Path(share)
    # pg_config is often in a development package that is not installed. These are the folders it would name.
    for name in (f"postgresql/{major}", "postgresql", f"postgresql{major}", f"postgresql@{major}", "pgsql", ""):
        yield folder.parent / "share" / name
        yield Path("/usr/share") / name


def _has_postgis(share: Path) -> bool:
    return (share / "extension" / "postgis.control").is_file()


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603  fixed programs
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _wrong_version(major: int, usable: list[Binaries]) -> EmbeddedError:
    present = ", ".join(str(version) for version in sorted(server.major for server in usable))
    remedy = f"{_remedy(major)}; or upgrade the data with pg_upgrade; or choose another data folder"
    return EmbeddedError(f"the cluster needs PostgreSQL {major}, but PostgreSQL {present} is installed", remedy=remedy)


def _remedy(major: int | None) -> str:
    for program, command in _INSTALL.items():
        if shutil.which(program):
            version = major or (_newest_debian() if program == "apt-get" else None) or OLDEST
            return "install it as root: " + command.format(major=version)
    return f"install PostgreSQL {major or OLDEST} with PostGIS, on Debian postgresql-{major or OLDEST}-postgis-3"


def _newest_debian() -> int | None:
    names = _output("apt-cache", "search", "--names-only", r"^postgresql-[0-9]+-postgis-3$")
    return max((int(major) for major in re.findall(r"^postgresql-(\d+)-", names, re.MULTILINE)), default=None)
