"""The functions that make identifiers."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any
from uuid import UUID

SINGLE = -1
"""The item index of a node that is not a child of a fan-out."""


def new_id() -> str:
    """Return a time-ordered UUID (version 7). New rows then land at the end of every index on it."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | int.from_bytes(os.urandom(10))
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(UUID(int=value))


def id_of_key(idempotency_key: str) -> str:
    """Return the job id of an idempotency key, a UUID of version 8. The same key always gives the same job."""
    value = int.from_bytes(hashlib.sha256(idempotency_key.encode()).digest()[:16])
    value = (value & ~(0xF << 76)) | (0x8 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(UUID(int=value))


def task_id(job_id: str, node_id: str, item_index: int, attempt: int) -> str:
    """Return the id of an attempt. It contains the ids of job, node, item and attempt."""
    if item_index == SINGLE:
        return f"{job_id}:{node_id}:{attempt}"
    before, after = around_index(job_id, node_id, attempt)
    return f"{before}{item_index}{after}"


def around_index(job_id: str, node_id: str, attempt: int) -> tuple[str, str]:
    """Return the text before and after the item index in the task ids of a fan-out."""
    return f"{job_id}:{node_id}[", f"]:{attempt}"


def canonical_json(value: Any) -> str:
    """Return JSON text that is the same for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
