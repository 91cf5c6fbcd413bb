"""Waiting for things outside of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any


async def until(true: Callable[[], Any], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def until_rows(bench: Any, query: str) -> None:
    """Wait until the query returns rows."""
    async with asyncio.timeout(60):
        while not await bench.rows(query):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    """No such process, or only its entry until its parent has read how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
