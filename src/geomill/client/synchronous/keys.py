# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on API keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.keys import KeyCreated, KeyPage, KeyView, NewKey


class KeyOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def page(self, **filters: Any) -> KeyPage:
        return self._connection.get(KeyPage, "/api/v1/keys", **filters)

    def get(self, key_id: str) -> KeyView:
        return self._connection.get(KeyView, path("/api/v1/keys/{}", key_id))

    def create(self, key: NewKey | Mapping[str, Any]) -> KeyCreated:
        """Create a key. Its secret is in the answer, and is shown only this once."""
        return self._connection.post(KeyCreated, "/api/v1/keys", key)

    def revoke(self, key_id: str) -> None:
        self._connection.delete(path("/api/v1/keys/{}", key_id))
