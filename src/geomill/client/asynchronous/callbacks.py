"""Operations on callbacks."""

from __future__ import annotations

from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.callbacks import CallbackPage, CallbackView


class AsyncCallbackOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def page(self, **filters: Any) -> CallbackPage:
        """Return a page of callbacks, the newest first. A submitter gets those of its own platform."""
        return await self._connection.get(CallbackPage, "/api/v1/callbacks", **filters)

    async def get(self, job_id: str) -> CallbackView:
        return await self._connection.get(CallbackView, path("/api/v1/jobs/{}/callback", job_id))

    async def send(self, job_id: str) -> CallbackView:
        """Send the callback of a job again."""
        return await self._connection.post(CallbackView, path("/api/v1/callbacks/{}/send", job_id))
