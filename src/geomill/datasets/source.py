"""A file that a job reads."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import ObjectName, Zone


class Source(BaseModel):
    """A file in the store, in the version that was validated."""

    zone: Zone = Zone.BRONZE
    container_name: str
    file_name: str
    etag: str | None = None

    @property
    def name(self) -> ObjectName:
        return ObjectName(self.zone, self.container_name, self.file_name)
