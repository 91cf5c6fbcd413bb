"""Operations on platforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.platforms import NewPlatform, PlatformPage
from geomill.domain.assets.platform import Platform


class AsyncPlatformOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def all(self, *, inactive: bool = False) -> list[Platform]:
        page = await self._connection.get(PlatformPage, "/api/platforms", inactive=inactive)
        return page.platforms

    async def get(self, platform_id: str) -> Platform:
        return await self._connection.get(Platform, path("/api/platforms/{}", platform_id))

    async def create(self, platform: NewPlatform | Mapping[str, Any]) -> Platform:
        return await self._connection.post(Platform, "/api/platforms", platform)

    async def change(self, platform_id: str, **changes: Any) -> Platform:
        """Change the named fields of a platform. The others stay as they are."""
        return await self._connection.patch(Platform, path("/api/platforms/{}", platform_id), changes)
