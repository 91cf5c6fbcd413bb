"""Reads `postmaster.pid` and checks that its process is the server.

The file remains after a crash or a reboot, and its process id may then belong to another program. The server refuses to
start if that program runs under the same user, so this module looks at the program of the process.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

READY = "ready"
STOPPING = "stopping"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    port: int | None = None
    socket_folder: Path | None = None
    status: str = ""

    @property
    def is_ready(self) -> bool:
        return self.status == READY


def running(pgdata: Path) -> Postmaster | None:
    """Return the running server of this folder, or None."""
    postmaster = recorded(pgdata)
    if postmaster is None or not is_server_of(_arguments(postmaster.pid), pgdata):
        return None
    return postmaster


def recorded(pgdata: Path) -> Postmaster | None:
    try:
        return parse((pgdata / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape"))
    except (FileNotFoundError, NotADirectoryError):
        return None


def parse(text: str) -> Postmaster | None:
    """Parse the lines pid, data folder, start time, port, socket folder, address, shared memory and status. The server
    writes them one after the other while it starts."""
    lines = [line.strip() for line in text.splitlines()] + [""] * 8
    if not lines[0].isdecimal():
        return None
    return Postmaster(
        pid=int(lines[0]),
        port=int(lines[3]) if lines[3].isdecimal() else None,
        socket_folder=Path(lines[4]) if lines[4] else None,
        status=lines[7],
    )


def remove_stale_pid_file(pgdata: Path) -> None:
    """Remove a pid file whose process id now belongs to another program. The file of a dead process stays: the server
    uses it to check that no process of the old server is left."""
    stale = recorded(pgdata)
    if stale is not None and _exists(stale.pid) and running(pgdata) is None:
        (pgdata / "postmaster.pid").unlink(missing_ok=True)


def is_server_of(arguments: list[str], pgdata: Path) -> bool:
    """Return whether a command line is the server of `pgdata`. In doubt it is: a server started by hand may not name
    its folder."""
    if not arguments or Path(arguments[0]).name not in ("postgres", "postmaster"):
        return False
    if "-D" not in arguments[:-1]:
        return True
    return Path(arguments[arguments.index("-D") + 1]).resolve() == pgdata.resolve()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and belongs to another user
    return True


def _arguments(pid: int) -> list[str]:
    """Return the process's command line, or an empty list if it is gone or a zombie."""
    if _PROC.joinpath("self").exists():
        try:
            raw = _PROC.joinpath(str(pid), "cmdline").read_bytes()
        except OSError:
            return []
        return [part.decode("utf-8", "surrogateescape") for part in raw.split(b"\0") if part]
    command = ["ps", "-o", "command=", "-p", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603  fixed words
    # ps joins the words with spaces, so a folder with a space cannot be recognised. Keep only the program.
    return listed.split()[:1]
