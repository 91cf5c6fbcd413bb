"""What the operating system does for us around a child: memory, no network, and death with the worker. Linux; elsewhere
less.

Memory is judged by what a process uses, not by what it reserves: numpy and GDAL reserve address space by the gigabyte
(thread stacks, arenas, caches), so RLIMIT_AS would fail tasks that need little. The worker looks several times a second
at the anonymous memory of each busy child (pages of files do not count, the kernel takes those back) and kills the one
beyond its limit; that way the reason is known. What grows faster than one look meets RLIMIT_DATA at twice the limit:
there malloc fails, which Python sees as MemoryError. And the kernel, should it run out before, takes a child first.
What this does badly: processes that a handler starts itself are only under RLIMIT_DATA, each for itself.
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
    """Have the kernel kill this process when its parent ends, however that ends; leave if it already did."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def leave_network() -> bool:
    """Go where there is no network, not even this machine's own; sockets that are open, and those of the file system,
    stay. Whether it was possible: some systems allow it to nobody but root. Before the first thread is started."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return True
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with contextlib.suppress(OSError):  # then it sees itself as nobody, which only looks odd
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
    """Anonymous memory in bytes; 0 where that cannot be known."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0
