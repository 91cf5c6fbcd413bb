# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on platforms."""

from __future__ import annotations

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.platforms import NewPlatform, PlatformChanges, PlatformPage
from geomill.domain.assets.platform import Platform


class PlatformOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def all(self) -> list[Platform]:
        page = self._connection.get(PlatformPage, "/api/platforms")
        return page.platforms

    def get(self, platform_id: str) -> Platform:
        return self._connection.get(Platform, path("/api/platforms/{}", platform_id))

    def create(self, platform: NewPlatform) -> Platform:
        return self._connection.post(Platform, "/api/platforms", platform)

    def replace(self, platform_id: str, platform: PlatformChanges) -> Platform:
        return self._connection.put(Platform, path("/api/platforms/{}", platform_id), platform)
