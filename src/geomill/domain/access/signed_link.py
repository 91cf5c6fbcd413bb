"""Signed links, which open one asset for a while to anybody who has them. They exist because web maps cannot send keys.

The ticket is one query parameter, `geomill_link=<expiry>-<generation>-<signature>`. Other query parameters filter
features by the column of that name, so this name is long enough that no column has it. The generation is the asset's
`withdrawn_through`. It grows when the asset is revoked or unpublished, which invalidates all earlier links.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

PARAMETER = "geomill_link"
LONGEST_SECONDS = 30 * 86_400
_TICKET = re.compile(r"([0-9]{1,12})-([0-9]{1,10})-([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True, repr=False)
class LinkKey:
    """The key that signs tickets. `repr` does not show it."""

    secret: bytes

    def ticket(self, asset_id: str, expires_at: int, generation: int) -> str:
        """Return the ticket of an asset. `expires_at` is in seconds since 1970."""
        return f"{expires_at}-{generation}-{self._signature(asset_id, expires_at, generation)}"

    def generation(self, ticket: str, asset_id: str, now: float) -> int | None:
        """Return the generation of a valid ticket for this asset; None if it is forged or expired. Tickets that live
        longer than the maximum are refused, which bounds the damage of a leaked key."""
        parts = _TICKET.fullmatch(ticket)
        if not parts:
            return None
        expires_at, generation = int(parts[1]), int(parts[2])
        matches = hmac.compare_digest(parts[3], self._signature(asset_id, expires_at, generation))
        return generation if matches and now < expires_at <= now + LONGEST_SECONDS else None

    def _signature(self, asset_id: str, expires_at: int, generation: int) -> str:
        text = f"geomill link 2\nread\n{asset_id}\n{expires_at}\n{generation}".encode()
        digest = hmac.new(self.secret, text, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
