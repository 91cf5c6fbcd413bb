"""The client: an address, a credential, and one group of operations for each noun."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import httpx

from geomill.client.asynchronous.assets import AsyncAssetOperations
from geomill.client.asynchronous.callbacks import AsyncCallbackOperations
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.client.asynchronous.jobs import AsyncJobOperations
from geomill.client.asynchronous.keys import AsyncKeyOperations
from geomill.client.asynchronous.operations import AsyncOperatorOperations
from geomill.client.asynchronous.platforms import AsyncPlatformOperations
from geomill.client.asynchronous.queues import AsyncQueueOperations
from geomill.client.asynchronous.schedules import AsyncScheduleOperations
from geomill.client.asynchronous.session import AsyncSessionOperations
from geomill.client.asynchronous.stage_jobs import AsyncStageJobOperations
from geomill.client.asynchronous.styles import AsyncStyleOperations
from geomill.client.asynchronous.uploads import AsyncUploadOperations
from geomill.client.asynchronous.workflows import AsyncWorkflowOperations
from geomill.contract.uploads import UploadView
from geomill.domain.addresses import is_loopback
from geomill.errors import SettingsError

TIMEOUT_SECONDS, CONNECT_SECONDS = 30.0, 5.0


class AsyncClient:
    """A client of one gateway: `async with AsyncClient(url, key) as client: await client.jobs.page()`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        tries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`tries` is how often a request that only reads is sent while the gateway is away."""
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            trust_env=not is_loopback(httpx.URL(url).host),  # a gateway on this machine is called without a proxy
            transport=transport,
        )
        self.connection = AsyncGatewayConnection(self._http, tries=tries)
        self.assets = AsyncAssetOperations(self.connection)
        self.styles = AsyncStyleOperations(self.connection)
        self.jobs = AsyncJobOperations(self.connection)
        self.stage_jobs = AsyncStageJobOperations(self.connection)
        self.platforms = AsyncPlatformOperations(self.connection)
        self.workflows = AsyncWorkflowOperations(self.connection)
        self.schedules = AsyncScheduleOperations(self.connection)
        self.queues = AsyncQueueOperations(self.connection)
        self.operations = AsyncOperatorOperations(self.connection)
        self.keys = AsyncKeyOperations(self.connection)
        self.callbacks = AsyncCallbackOperations(self.connection)
        self.uploads = AsyncUploadOperations(self.connection)
        self.session = AsyncSessionOperations(self.connection)

    async def upload(self, file: Path, **options: Any) -> UploadView:
        """Upload a file into the platform's container in bronze. `options` are those of `uploads.send_file`."""
        return await self.uploads.send_file(file, **options)

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """Return a client of the gateway that GEOMILL_URL and GEOMILL_KEY name."""
        missing = [name for name in ("GEOMILL_URL", "GEOMILL_KEY") if not os.environ.get(name)]
        if missing:
            raise SettingsError(f"{' and '.join(missing)} is not set", remedy="set GEOMILL_URL and GEOMILL_KEY")
        return cls(os.environ["GEOMILL_URL"], os.environ["GEOMILL_KEY"], **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()
