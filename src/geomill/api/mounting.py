"""What the gateway asks of services that are mounted beside its own routes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from starlette.types import ASGIApp

from geomill.store.pool import Pool


class Mountable(Protocol):
    @property
    def prefixes(self) -> Sequence[str]: ...

    def part(self, prefix: str) -> ASGIApp:
        """What answers below the prefix."""

    def running(self, pool: Pool) -> AbstractAsyncContextManager[None]:
        """For as long as the gateway runs."""
