"""The interface of services that the gateway mounts beside its own routes."""

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
        """Return the application that serves the prefix."""

    def running(self, pool: Pool) -> AbstractAsyncContextManager[None]:
        """Run the services while the gateway runs."""
