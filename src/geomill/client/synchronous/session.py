# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on the caller itself, and links that sign in to the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.sessions import NewSignInLink, SessionView, SignInLink


class SessionOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def get(self) -> SessionView:
        """Return who calls, and what the caller may do."""
        return self._connection.get(SessionView, "/api/v1/session")

    def create_link(self, link: NewSignInLink | Mapping[str, Any]) -> SignInLink:
        """Create a link that signs in to the console once."""
        return self._connection.post(SignInLink, "/api/v1/session/links", link)
