"""A figure that is expensive to read, kept for a while. Callers who ask meanwhile wait for one reading."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    def __init__(self, read: Callable[[], Awaitable[Value]], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._value: tuple[Value, float] | None = None
        self._reading = asyncio.Lock()

    async def get(self) -> Value:
        """Return the figure, which is at most `seconds` old. An error of the reading is not kept."""
        async with self._reading:
            if self._value is None or time.monotonic() - self._value[1] > self._seconds:
                self._value = (await self._read(), time.monotonic())
            return self._value[0]
