"""A network switch in a process of its own, which loses and delays what passes each link.

    python -m tests.chaos.switch SEED ADDRESS=DEVICE …

Each device is a TUN device: what its host sends is read here, and handed to the device that has the packet's
destination. The kernel makes and checks the packets, so TCP sees true losses and true delays. It takes no module for
weather in the kernel, which many lack. A line of JSON on standard input changes the weather of one link, and is
answered by an empty line.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import selectors
import socket
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

TUN = "/dev/net/tun"
SET_INTERFACE = 0x400454CA
LAYER_3, WITHOUT_HEADER = 0x0001, 0x1000
LONGEST_PACKET = 65536
AT_ONCE = 64
"""Packets of one device in one turn, so that no link starves the others."""


@dataclass(frozen=True)
class Weather:
    """The state of a link. The directions are those of its host: `out` is what the host sends."""

    lost_out: float = 0.0
    lost_in: float = 0.0
    """The shares of packets that are lost."""
    delay_seconds: float = 0.0
    """How much later each packet arrives, in each direction."""


FINE = Weather()


class Switch:
    def __init__(self, seed: str, devices: dict[bytes, int]) -> None:
        self._chance = random.Random(seed)
        self._devices = devices
        self._weather = dict.fromkeys(devices, FINE)
        self._late: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def change(self, address: str, weather: Weather) -> None:
        self._weather[socket.inet_aton(address)] = weather

    def read(self, source: bytes) -> None:
        for _ in range(AT_ONCE):
            try:
                packet = os.read(self._devices[source], LONGEST_PACKET)
            except BlockingIOError:
                return
            if packet[0] >> 4 == 4:
                self._pass_on(source, packet[16:20], packet)

    def _pass_on(self, source: bytes, target: bytes, packet: bytes) -> None:
        if target not in self._devices:
            return
        sender, receiver = self._weather[source], self._weather[target]
        if self._is_lost(sender.lost_out) or self._is_lost(receiver.lost_in):
            return
        if delay := sender.delay_seconds + receiver.delay_seconds:
            self._count += 1
            heapq.heappush(self._late, (time.monotonic() + delay, self._count, self._devices[target], packet))
        else:
            _write(self._devices[target], packet)

    def _is_lost(self, share: float) -> bool:
        return share > 0 and self._chance.random() < share

    def deliver(self) -> float | None:
        """Deliver what is due. Returns the seconds until the next packet is, or None."""
        while self._late:
            wait = self._late[0][0] - time.monotonic()
            if wait > 0:
                return wait
            _, _, device, packet = heapq.heappop(self._late)
            _write(device, packet)
        return None


def _write(device: int, packet: bytes) -> None:
    with suppress(OSError):  # the device is down, or its queue is full: as on any network, the packet is lost
        os.write(device, packet)


def _opened(name: str) -> int:
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, SET_INTERFACE, struct.pack("16sH22x", name.encode(), LAYER_3 | WITHOUT_HEADER))
    return device


def _answer() -> None:
    print(flush=True)


def run(seed: str, links: Sequence[str]) -> None:
    pairs = [link.split("=") for link in links]
    devices = {socket.inet_aton(address): _opened(name) for address, name in pairs}
    switch = Switch(seed, devices)
    with selectors.DefaultSelector() as selector:
        for address, device in devices.items():
            selector.register(device, selectors.EVENT_READ, address)
        selector.register(sys.stdin, selectors.EVENT_READ)
        _answer()
        while True:
            for key, _ in selector.select(switch.deliver()):
                if key.data is not None:
                    switch.read(key.data)
                elif line := sys.stdin.readline():
                    order = json.loads(line)
                    switch.change(order.pop("address"), Weather(**order))
                    _answer()
                else:
                    return


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
