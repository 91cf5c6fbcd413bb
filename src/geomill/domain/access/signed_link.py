"""Links that open one asset for a while, for whoever holds them: a web map cannot send a key.

The ticket is one query parameter, `geomill_link=<expiry>-<generation>-<signature>`. Its name is long so that no column
of a table is called so: other parameters filter features by the column of that name. The generation is the asset's
`withdrawn_through`: when the asset is revoked or unpublished it grows, and every link made before ends.
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
    """`repr` does not show it."""

    secret: bytes

    def ticket(self, asset_id: str, expires_at: int, generation: int) -> str:
        """`expires_at` in seconds since 1970."""
        return f"{expires_at}-{generation}-{self._signature(asset_id, expires_at, generation)}"

    def generation(self, ticket: str, asset_id: str, now: float) -> int | None:
        """The ticket's generation if it is ours, for this asset, and not yet expired; else None. One that would live
        longer than any we give is refused, so that a key which leaked can be outlived."""
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
