"""Tells systemd, if it started this process, that the process is ready and that its event loop still runs.

systemd restarts a process that stays silent for `WatchdogSec`. So a loop that hangs costs that time, not the process.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

SOCKET = "NOTIFY_SOCKET"
INTERVAL = "WATCHDOG_USEC"
SIGNS_PER_INTERVAL = 3


@asynccontextmanager
async def signs_of_life(environ: Mapping[str, str] = os.environ) -> AsyncIterator[None]:
    """Report that the process is ready, and then regularly that it lives. Without systemd, do nothing."""
    address = environ.get(SOCKET)
    if not address:
        yield
        return
    _send(address, "READY=1")
    microseconds = int(environ.get(INTERVAL) or 0)
    beating = asyncio.create_task(_beat(address, microseconds / 1e6 / SIGNS_PER_INTERVAL), name="watchdog")
    try:
        yield
    finally:
        beating.cancel()
        _send(address, "STOPPING=1")


async def _beat(address: str, seconds: float) -> None:
    while seconds > 0:
        _send(address, "WATCHDOG=1")
        await asyncio.sleep(seconds)


def _send(address: str, text: str) -> None:
    """Send one datagram. A leading `@` stands for an abstract address, whose first byte is zero."""
    place = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(text.encode(), place)
