"""Descriptions of files that tasks pass on: the inventory of a job's outputs."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import ObjectName, Stored, Zone

RASTER_CONTAINER = "cogs"
VECTOR_CONTAINER = "vectors"
INTERMEDIATE_CONTAINER = "intermediates"
JSON_TYPE = "application/json"
GEOJSON_TYPE = "application/geo+json"


class FileEntry(BaseModel):
    """A file as listed in an asset's inventory."""

    zone: str
    container: str
    path: str
    sha256: str
    size: int
    media_type: str
    role: str

    @classmethod
    def of(cls, stored: Stored, media_type: str, role: str) -> FileEntry:
        name = stored.name
        return cls(
            zone=name.zone.value,
            container=name.container,
            path=name.path,
            sha256=stored.sha256,
            size=stored.size,
            media_type=media_type,
            role=role,
        )

    @property
    def name(self) -> ObjectName:
        return ObjectName(Zone(self.zone), self.container, self.path)
