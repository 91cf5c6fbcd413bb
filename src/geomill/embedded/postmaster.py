"""What `postmaster.pid` says, and whether it is still true.

After a crash or a reboot the file stays behind, and its process id may by then be another program's. The server
itself refuses to start when that program runs under the same user, so we look at what the process really is.
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
    """The server of this folder, if there is one alive."""
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
    """Lines: pid, data folder, start time, port, socket folder, address, shared memory, status. The server writes them
    bit by bit while it starts."""
    lines = [line.strip() for line in text.splitlines()] + [""] * 8
    if not lines[0].isdecimal():
        return None
    return Postmaster(
        pid=int(lines[0]),
        port=int(lines[3]) if lines[3].isdecimal() else None,
        socket_folder=Path(lines[4]) if lines[4] else None,
        status=lines[7],
    )


def forget_stranger(pgdata: Path) -> None:
    """Removes a pid file whose process id is now another program's. That of a dead process is left to the server,
    which first makes sure by it that no process of the old one still lives."""
    stale = recorded(pgdata)
    if stale is not None and _exists(stale.pid) and running(pgdata) is None:
        (pgdata / "postmaster.pid").unlink(missing_ok=True)


def is_server_of(arguments: list[str], pgdata: Path) -> bool:
    """In doubt yes: a server started by hand may name its folder in another way, and must not be taken for dead."""
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
        pass  # somebody else's, so it is there
    return True


def _arguments(pid: int) -> list[str]:
    """The process's command line; empty when it is gone or a zombie that nobody has reaped."""
    if _PROC.joinpath("self").exists():
        try:
            raw = _PROC.joinpath(str(pid), "cmdline").read_bytes()
        except OSError:
            return []
        return [part.decode("utf-8", "surrogateescape") for part in raw.split(b"\0") if part]
    command = ["ps", "-o", "command=", "-p", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603  fixed words
    # ps joins the words with spaces, so a folder with a space in it cannot be told: only the program is kept.
    return listed.split()[:1]
