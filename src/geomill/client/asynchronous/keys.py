"""Operations on API keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.keys import KeyCreated, KeyPage, KeyView, NewKey


class AsyncKeyOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def page(self, **filters: Any) -> KeyPage:
        return await self._connection.get(KeyPage, "/api/v1/keys", **filters)

    async def get(self, key_id: str) -> KeyView:
        return await self._connection.get(KeyView, path("/api/v1/keys/{}", key_id))

    async def create(self, key: NewKey | Mapping[str, Any]) -> KeyCreated:
        """Create a key. Its secret is in the answer, and is shown only this once."""
        return await self._connection.post(KeyCreated, "/api/v1/keys", key)

    async def revoke(self, key_id: str) -> None:
        await self._connection.delete(path("/api/v1/keys/{}", key_id))
