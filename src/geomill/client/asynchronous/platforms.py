"""Operations on platforms."""

from __future__ import annotations

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.platforms import NewPlatform, PlatformChanges, PlatformPage
from geomill.domain.assets.platform import Platform


class AsyncPlatformOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def all(self) -> list[Platform]:
        page = await self._connection.get(PlatformPage, "/api/platforms")
        return page.platforms

    async def get(self, platform_id: str) -> Platform:
        return await self._connection.get(Platform, path("/api/platforms/{}", platform_id))

    async def create(self, platform: NewPlatform) -> Platform:
        return await self._connection.post(Platform, "/api/platforms", platform)

    async def replace(self, platform_id: str, platform: PlatformChanges) -> Platform:
        return await self._connection.put(Platform, path("/api/platforms/{}", platform_id), platform)
