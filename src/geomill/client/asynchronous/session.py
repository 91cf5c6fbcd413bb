"""Operations on the caller itself, and links that sign in to the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.sessions import NewSignInLink, SessionView, SignInLink


class AsyncSessionOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def get(self) -> SessionView:
        """Return who calls, and what the caller may do."""
        return await self._connection.get(SessionView, "/api/v1/session")

    async def create_link(self, link: NewSignInLink | Mapping[str, Any]) -> SignInLink:
        """Create a link that signs in to the console once."""
        return await self._connection.post(SignInLink, "/api/v1/session/links", link)
