"""How much memory a serving process may have. Linux; elsewhere there is no limit.

A thread looks twice a second at the anonymous memory of the process, and ends it when that is beyond the limit:
whoever supervises it starts it again. What grows while a library holds Python's lock, so that no thread can look, meets
RLIMIT_DATA at twice the limit. There an allocation fails, which ends the process too, or the request.
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
"""EX_SOFTWARE: no supervisor takes it for an orderly end."""
_LOOK_SECONDS = 0.5
_HEADROOM = 512 * MEGABYTE
_PAGE = resource.getpagesize()
_STATM = Path("/proc/self/statm")


def limit_memory(megabytes: int) -> None:
    """For the rest of the life of this process."""
    ceiling = 2 * megabytes * MEGABYTE + _HEADROOM
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard), hard))
    if _STATM.exists():
        threading.Thread(target=_watch, args=(megabytes,), name="memory", daemon=True).start()


def used_megabytes() -> int:
    """Anonymous memory: pages of files do not count, the kernel takes those back."""
    _, resident, shared, *_ = _STATM.read_text(encoding="ascii").split()
    return (int(resident) - int(shared)) * _PAGE // MEGABYTE


def _watch(megabytes: int) -> None:
    while (used := used_megabytes()) <= megabytes:
        time.sleep(_LOOK_SECONDS)
    log.critical(
        "this process uses %s MB of memory and may have %s: it ends, and is started again by its supervisor",
        used,
        megabytes,
        extra={"action": "memory"},
    )
    logging.shutdown()
    os._exit(EXIT_CODE)


def raise_file_limit() -> None:
    """Each connection is an open file, and many systems allow 1,024 of them unless a process asks for more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
