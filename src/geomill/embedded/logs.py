"""The server's logs: `start.log` until its collector runs, then one file per day of the week."""

from __future__ import annotations

from pathlib import Path

_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 12


def start_log(folder: Path) -> Path:
    return folder / "start.log"


def begin(folder: Path) -> None:
    """Delete the log of the last start, so that the file does not grow forever."""
    start_log(folder).unlink(missing_ok=True)


def tail(folder: Path) -> str:
    """Return the last lines of the start log, and of the collector's log if the start reached it."""
    start = start_log(folder)
    if not start.exists():
        return ""
    began = start.stat().st_mtime - 1
    later = [path for path in folder.glob("postgresql-*.log") if path.stat().st_mtime >= began]
    return "".join(_last_lines(path) for path in (start, *sorted(later)))


def _last_lines(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return "".join(line + "\n" for line in text.splitlines()[-_TAIL_LINES:])
