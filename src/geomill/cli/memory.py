"""Limits the memory of a serving process. Works on Linux; elsewhere there is no limit.

A thread checks the anonymous memory of the process twice a second and ends the process above the limit; its supervisor
starts it again. The thread cannot run while a library holds Python's lock, so RLIMIT_DATA is set to twice the limit:
there an allocation fails, which ends the request or the process.
"""

from __future__ import annotations

import logging
import os
import resource
import threading
import time
from pathlib import Path

log = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
EXIT_CODE = 70
"""EX_SOFTWARE. Supervisors treat it as a failure and restart the process."""
_LOOK_SECONDS = 0.5
_HEADROOM = 512 * MEGABYTE
_PAGE = resource.getpagesize()
_STATM = Path("/proc/self/statm")


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process from now on."""
    ceiling = 2 * megabytes * MEGABYTE + _HEADROOM
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard), hard))
    if _STATM.exists():
        threading.Thread(target=_watch, args=(megabytes,), name="memory", daemon=True).start()


def used_megabytes() -> int:
    """Return the anonymous memory of this process. Pages of files do not count, since the kernel can reclaim them."""
    _, resident, shared, *_ = _STATM.read_text(encoding="ascii").split()
    return (int(resident) - int(shared)) * _PAGE // MEGABYTE


def _watch(megabytes: int) -> None:
    while (used := used_megabytes()) <= megabytes:
        time.sleep(_LOOK_SECONDS)
    log.critical(
        "this process uses %s MB of memory, above its limit of %s MB: it exits so that its supervisor restarts it",
        used,
        megabytes,
        extra={"action": "memory"},
    )
    logging.shutdown()
    os._exit(EXIT_CODE)


def raise_file_limit() -> None:
    """Raise the limit of open files to the maximum. Each connection is one, and many systems allow 1,024 by default."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
