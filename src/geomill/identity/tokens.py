"""Tokens of managed identities. azure-identity asks for them, keeps them, and renews each before it ends.

It knows where each service of Azure hands out tokens: Container Apps and App Service (`IDENTITY_ENDPOINT`), virtual
machines, and Kubernetes with workload identity. It is imported at the first use, because most installations have none.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from geomill.errors import IdentityUnavailable, SettingsError

if TYPE_CHECKING:
    from azure.identity import ManagedIdentityCredential

STORAGE, DATABASE, MANAGEMENT = (
    "https://storage.azure.com/.default",
    "https://ossrdbms-aad.database.windows.net/.default",
    "https://management.azure.com/.default",
)
"""The service that a token is for."""
PATIENCE: dict[str, Any] = {"retry_total": 2, "retry_backoff_factor": 0.2, "connection_timeout": 3, "read_timeout": 10}
"""A caller with a deadline waits for the token. It tries again itself."""
_REMEDY = "check that the identity is assigned to this process, and AZURE_CLIENT_ID if there are several"


@dataclass(frozen=True, slots=True)
class AccessToken:
    text: str = field(repr=False)
    expires_at: datetime


def token(scope: str, client_id: str | None = None) -> AccessToken:
    """Return a token that is valid for at least some minutes. Blocks while a new one is fetched. Raises
    `IdentityUnavailable`."""
    from azure.core.exceptions import AzureError

    credential, lock = _credential(client_id or None)
    try:
        with lock:  # of many threads that need a new token, one asks for it
            access = credential.get_token(scope)
    except (AzureError, ValueError) as error:  # ValueError: the answer is no JSON
        raise IdentityUnavailable(
            f"no token for {scope.removesuffix('/.default')}: {_reason(error)}", remedy=_REMEDY
        ) from None
    return AccessToken(access.token, datetime.fromtimestamp(access.expires_on, UTC))


@lru_cache(maxsize=16)
def _credential(client_id: str | None) -> tuple[ManagedIdentityCredential, threading.Lock]:
    try:
        from azure.identity import ManagedIdentityCredential
    except ImportError:
        raise SettingsError(
            "a managed identity is needed, and azure-identity is not installed",
            remedy="install the extra `azure`, or set a password or a key",
        ) from None
    logging.getLogger("azure").setLevel(logging.WARNING)  # otherwise each token is a line
    return ManagedIdentityCredential(client_id=client_id, **PATIENCE), threading.Lock()


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
