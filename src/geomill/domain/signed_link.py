"""Links that open one asset for a while, for whoever holds them: a web map cannot send a key.

The ticket is one query parameter, `geomill_link=<expiry>-<signature>`. Its name is long so that no column of a table
is called so: other parameters filter features by the column of that name.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

PARAMETER = "geomill_link"
LONGEST_SECONDS = 30 * 86_400
_TICKET = re.compile(r"([0-9]{1,12})-([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True, repr=False)
class LinkKey:
    """`repr` does not show it."""

    secret: bytes

    def ticket(self, asset_id: str, expires_at: int) -> str:
        """`expires_at` in seconds since 1970."""
        return f"{expires_at}-{self._signature(asset_id, expires_at)}"

    def opens(self, ticket: str, asset_id: str, now: float) -> bool:
        """Whether it is ours, for this asset, and not yet expired. One that would live longer than any we give is
        refused, so that a key which leaked can be outlived."""
        found = _TICKET.fullmatch(ticket)
        if not found:
            return False
        expires_at = int(found[1])
        fits = hmac.compare_digest(found[2], self._signature(asset_id, expires_at))
        return fits and now < expires_at <= now + LONGEST_SECONDS

    def _signature(self, asset_id: str, expires_at: int) -> str:
        text = f"geomill link 1\nread\n{asset_id}\n{expires_at}".encode()
        digest = hmac.new(self.secret, text, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
