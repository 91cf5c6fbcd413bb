"""The server's settings. docs/how-to/embedded-database.md explains each to users; a test compares the two."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_MIB = 1024 * 1024
_HEAD = """\
# geomill writes this file at each start, so changes made here are lost.
# Put your own settings into postgresql.local.conf beside this file. The server reads it after this one.
"""
# Relative, so that the folder can be moved: the server resolves them from postgresql.conf's own folder.
INCLUDES = """
include_if_exists = '../geomill.conf'
include_if_exists = '../postgresql.local.conf'
"""


def workstation(memory: int) -> dict[str, str]:
    """Return settings for a machine that also does other work."""
    return {
        "shared_buffers": f"{_clamp(memory // 4, 32, 512)}MB",
        "effective_cache_size": f"{_clamp(memory // 2, 64, 1024 * 1024)}MB",
        "work_mem": "16MB",
        "maintenance_work_mem": f"{_clamp(memory // 16, 16, 256)}MB",
        "max_connections": "200",
        "fsync": "on",
        "synchronous_commit": "on",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "random_page_cost": "1.1",
        "jit": "off",
        "autovacuum_naptime": "10s",
        "idle_in_transaction_session_timeout": "5min",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "lc_messages": "C",
        "logging_collector": "on",
        "log_filename": "postgresql-%a.log",
        "log_rotation_age": "1d",
        "log_rotation_size": "0",
        "log_truncate_on_rotation": "on",
        "log_line_prefix": "%m [%p] %q%a ",
    }


def connection(port: int, socket_folder: Path, log_folder: Path) -> dict[str, str]:
    return {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        # Double quotes, because a comma or a space would end a name in this list.
        "unix_socket_directories": '"{}"'.format(str(socket_folder).replace('"', '""')),
        "unix_socket_permissions": "0700",
        "log_directory": str(log_folder),
    }


def render(settings: Mapping[str, str]) -> str:
    return _HEAD + "\n".join(f"{name} = {_quote(value)}" for name, value in settings.items())


def memory() -> int:
    """Return the bytes of memory of this machine, or of the container around this process."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdecimal() else physical


def _clamp(size: int, least: int, most: int) -> int:
    return max(least, min(size // _MIB, most))


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
