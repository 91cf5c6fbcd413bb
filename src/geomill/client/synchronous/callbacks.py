# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on callbacks."""

from __future__ import annotations

from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.callbacks import CallbackPage, CallbackView


class CallbackOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def page(self, **filters: Any) -> CallbackPage:
        """Return a page of callbacks, the newest first. A submitter gets those of its own platform."""
        return self._connection.get(CallbackPage, "/api/v1/callbacks", **filters)

    def get(self, job_id: str) -> CallbackView:
        return self._connection.get(CallbackView, path("/api/v1/jobs/{}/callback", job_id))

    def send(self, job_id: str) -> CallbackView:
        """Send the callback of a job again."""
        return self._connection.post(CallbackView, path("/api/v1/callbacks/{}/send", job_id))
