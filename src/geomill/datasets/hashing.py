"""Computes the SHA-256 of an object while streaming it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import Any

from geomill.sdk import HandlerContext, ObjectName, Storage


def sha256_of(storage: Storage, name: ObjectName, ctx: HandlerContext[Any]) -> str:
    return asyncio.run(_hash(storage, name, ctx))


async def _hash(storage: Storage, name: ObjectName, ctx: HandlerContext[Any]) -> str:
    digest, done, total = hashlib.sha256(), 0, (await storage.stat(name)).size
    async with contextlib.aclosing(storage.stream(name)) as parts:
        async for part in parts:
            ctx.raise_if_cancelled()
            digest.update(part)
            done += len(part)
            ctx.progress(0.3 + 0.7 * done / total, message="hashing the source")
    return digest.hexdigest()
