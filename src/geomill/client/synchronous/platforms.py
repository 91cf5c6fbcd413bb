# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on platforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.platforms import NewPlatform, PlatformPage
from geomill.domain.assets.platform import Platform


class PlatformOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def all(self, *, inactive: bool = False) -> list[Platform]:
        page = self._connection.get(PlatformPage, "/api/platforms", inactive=inactive)
        return page.platforms

    def get(self, platform_id: str) -> Platform:
        return self._connection.get(Platform, path("/api/platforms/{}", platform_id))

    def create(self, platform: NewPlatform | Mapping[str, Any]) -> Platform:
        return self._connection.post(Platform, "/api/platforms", platform)

    def change(self, platform_id: str, **changes: Any) -> Platform:
        """Change the named fields of a platform. The others stay as they are."""
        return self._connection.patch(Platform, path("/api/platforms/{}", platform_id), changes)
