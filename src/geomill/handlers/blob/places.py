"""Places of assets' files, and the entries of an inventory."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.domain.assets.inventory import PUBLIC_CONTAINER
from geomill.sdk import ObjectName, Storage, Zone

PUBLISHED = "published"
"""The container in silver of files that are published unchanged."""
PUBLIC = PUBLIC_CONTAINER
ARRIVING = "_arriving"
"""The folder of files whose hash is not checked yet. No asset's folder begins with an underscore."""

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def of_attempt(attempt_id: str) -> str:
    """Return a folder name that no other attempt uses."""
    return re.sub(r"[^A-Za-z0-9-]", "-", attempt_id)


class OutputFile(BaseModel):
    """A line of an asset's inventory."""

    zone: Zone
    container: str
    path: str
    sha256: Hash
    size: int
    media_type: str = "application/octet-stream"
    role: str = "data"

    @property
    def name(self) -> ObjectName:
        return ObjectName(self.zone, self.container, self.path)


async def sha256_of(storage: Storage, name: ObjectName) -> str:
    """Return the SHA-256 of the stored bytes."""
    digest = hashlib.sha256()
    async for part in storage.stream(name):
        digest.update(part)
    return digest.hexdigest()
