"""The messages between a worker and its child: frames of JSON, preceded by their length, over a socket.

worker → child   setup {modules, names, memory_mb, storage, database}, run {ticket, message, checkpoint},
                 cancel {ticket}, answer {number, page or error}, until {until}
child → worker   ready {offline}, progress {fraction, message}, checkpoint {phase, data}, log {level, text}, ended {…},
                 ask {number, node_id, after, having}, limit {seconds, message}
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">I")
LONGEST_FRAME = 64 * 1024 * 1024

Frame = dict[str, Any]


def encode(kind: str, **fields: Any) -> bytes:
    body = json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> Frame:
    """Decode a frame. Raises `ValueError` if the bytes are not a frame."""
    frame = json.loads(body)
    if not isinstance(frame, dict) or "kind" not in frame:
        raise ValueError("not a frame")
    return frame


def _length(head: bytes) -> int:
    length: int = _LENGTH.unpack(head)[0]
    if length > LONGEST_FRAME:
        raise ValueError(f"a frame of {length} bytes")
    return length


async def read(reader: asyncio.StreamReader) -> Frame | None:
    """Return the next frame, or None if the other side is gone."""
    try:
        head = await reader.readexactly(_LENGTH.size)
        return decode(await reader.readexactly(_length(head)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive(sock: socket.socket) -> Frame | None:
    """Does what `read` does, for a thread that may block."""
    head = _exactly(sock, _LENGTH.size)
    body = _exactly(sock, _length(head)) if head else None
    return decode(body) if body else None


def _exactly(sock: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = sock.recv(min(count - len(parts), 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
