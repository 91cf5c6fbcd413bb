# Written by script/client from client/asynchronous. Change that, not this.
"""The client: an address, a credential, and one group of operations for each noun."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import httpx

from geomill.client.synchronous.assets import AssetOperations
from geomill.client.synchronous.callbacks import CallbackOperations
from geomill.client.synchronous.connection import GatewayConnection
from geomill.client.synchronous.jobs import JobOperations
from geomill.client.synchronous.keys import KeyOperations
from geomill.client.synchronous.operations import OperatorOperations
from geomill.client.synchronous.platforms import PlatformOperations
from geomill.client.synchronous.queues import QueueOperations
from geomill.client.synchronous.schedules import ScheduleOperations
from geomill.client.synchronous.session import SessionOperations
from geomill.client.synchronous.stage_jobs import StageJobOperations
from geomill.client.synchronous.styles import StyleOperations
from geomill.client.synchronous.uploads import UploadOperations
from geomill.client.synchronous.workflows import WorkflowOperations
from geomill.contract.uploads import UploadView
from geomill.domain.addresses import is_loopback
from geomill.errors import SettingsError

TIMEOUT_SECONDS, CONNECT_SECONDS = 30.0, 5.0


class Client:
    """A client of one gateway: `with Client(url, key) as client: client.jobs.page()`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        tries: int = 3,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`tries` is how often a request that only reads is sent while the gateway is away."""
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            trust_env=not is_loopback(httpx.URL(url).host),  # a gateway on this machine is called without a proxy
            transport=transport,
        )
        self.connection = GatewayConnection(self._http, tries=tries)
        self.assets = AssetOperations(self.connection)
        self.styles = StyleOperations(self.connection)
        self.jobs = JobOperations(self.connection)
        self.stage_jobs = StageJobOperations(self.connection)
        self.platforms = PlatformOperations(self.connection)
        self.workflows = WorkflowOperations(self.connection)
        self.schedules = ScheduleOperations(self.connection)
        self.queues = QueueOperations(self.connection)
        self.operations = OperatorOperations(self.connection)
        self.keys = KeyOperations(self.connection)
        self.callbacks = CallbackOperations(self.connection)
        self.uploads = UploadOperations(self.connection)
        self.session = SessionOperations(self.connection)

    def upload(self, file: Path, **options: Any) -> UploadView:
        """Upload a file into the platform's container in bronze. `options` are those of `uploads.send_file`."""
        return self.uploads.send_file(file, **options)

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """Return a client of the gateway that GEOMILL_URL and GEOMILL_KEY name."""
        missing = [name for name in ("GEOMILL_URL", "GEOMILL_KEY") if not os.environ.get(name)]
        if missing:
            raise SettingsError(f"{' and '.join(missing)} is not set", remedy="set GEOMILL_URL and GEOMILL_KEY")
        return cls(os.environ["GEOMILL_URL"], os.environ["GEOMILL_KEY"], **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()
