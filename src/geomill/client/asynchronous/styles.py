"""Operations on the styles of assets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.styles import StylesView, StyleView


class AsyncStyleOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def all(self, asset_id: str) -> StylesView:
        """Return the styles of an asset, those that came with the data and the computed one included."""
        return await self._connection.get(StylesView, path("/api/assets/{}/styles", asset_id))

    async def get(self, asset_id: str, name: str) -> StyleView:
        return await self._connection.get(StyleView, path("/api/assets/{}/styles/{}", asset_id, name))

    async def put(
        self, asset_id: str, name: str, style: Mapping[str, Any] | str, *, form: str = "style", default: bool = False
    ) -> StyleView:
        """Add or replace a style. With `default`, the asset is drawn with it when no style is named. `form` is `qml` or
        `sld` if the style is the text of such a file."""
        body = {form: style, "default": default}
        return await self._connection.put(StyleView, path("/api/assets/{}/styles/{}", asset_id, name), body)

    async def delete(self, asset_id: str, name: str) -> None:
        await self._connection.delete(path("/api/assets/{}/styles/{}", asset_id, name))
