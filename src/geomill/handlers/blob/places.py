"""Where files of assets lie, and what is told of them."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.sdk import ObjectName, Storage, Zone

PUBLISHED = "published"
"""The container in silver of files that are published as they are."""
PUBLIC = "public"
"""The container of the external zone."""

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


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
    """Of the bytes as they are stored."""
    digest = hashlib.sha256()
    async for part in storage.stream(name):
        digest.update(part)
    return digest.hexdigest()
