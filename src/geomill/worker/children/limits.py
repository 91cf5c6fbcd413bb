"""Limits of a child by the operating system: memory, no network, and an end with the worker. Complete only on Linux.

The memory limit counts used, not reserved memory. numpy and GDAL reserve gigabytes of address space for thread stacks,
arenas and caches, so RLIMIT_AS would fail tasks that need little. Several times a second the worker reads the anonymous
memory of each busy child and kills a child beyond its limit, so the reason is known. Pages of files do not count,
because the kernel can reclaim them. A faster growth meets RLIMIT_DATA at twice the limit, where malloc fails and Python
raises MemoryError. If the machine runs out of memory first, the kernel kills a child before the worker.

Weakness: processes that a handler starts itself are only under RLIMIT_DATA, each on its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

MEGABYTE = 1024 * 1024
_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER, _CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_PAGE = resource.getpagesize()
_FIRST_VICTIM = "500"
_HEADROOM = 256 * MEGABYTE


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends. Exits if the parent has already ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def leave_network() -> bool:
    """Move this process to a namespace without any network, not even the loopback device. Open sockets and Unix sockets
    still work. Returns False if that is not possible: some systems allow it only to root. Call it before any thread is
    started."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return True
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with contextlib.suppress(OSError):  # without the maps the process has the user "nobody", which is harmless
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    return True


def limit_memory(megabytes: int | None) -> None:
    with contextlib.suppress(OSError):  # not Linux, or a container that forbids it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_VICTIM, encoding="ascii")
    if megabytes is not None:
        ceiling = 2 * megabytes * MEGABYTE + _HEADROOM
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def memory_of(pid: int) -> int:
    """Return the anonymous memory in bytes; 0 if the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0
