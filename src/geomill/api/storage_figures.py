"""The use of storage by zone. Read at most once a minute, since it reads the inventories of all assets."""

from __future__ import annotations

from collections.abc import Sequence

from geomill.api.disks import Disks
from geomill.api.remembered import Remembered
from geomill.contract.operations import FeatureUsageView, PlatformUsageView, StorageView, ZoneUsageView
from geomill.domain.location import AzureAccount, Folder, Location, parse_location
from geomill.domain.objectname import Zone
from geomill.storage import Storage
from geomill.storage.space import Space
from geomill.store import metrics, storage_usage
from geomill.store.pool import Pool
from geomill.store.storage_usage import ZoneUsage

FRESH_SECONDS = 60.0
PATIENCE_SECONDS = 5.0


class StorageFigures:
    def __init__(self, pool: Pool, storage: Storage, disks: Disks) -> None:
        self._pool, self._disks = pool, disks
        self._locations = {zone: parse_location(text) for zone, text in storage.recipe.zones.items()}
        self._remembered = Remembered(self._read, FRESH_SECONDS)

    async def look(self) -> StorageView:
        """Return the figures, which are at most a minute old."""
        return await self._remembered.get()

    async def _read(self) -> StorageView:
        spaces = {space.place: space for space in await self._disks.look()}
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            usages = await storage_usage.zones(conn)
            features = await storage_usage.features(conn)
            now = await metrics.clock(conn)
        zones = [
            _view(str(zone), location, [usage for usage in usages if usage.zone == zone], spaces.get(zone))
            for zone, location in self._locations.items()
        ]
        return StorageView(
            zones=zones,
            features=FeatureUsageView(tables=features.tables, bytes=features.bytes),
            measured_at=now,
        )


def _view(zone: str, location: Location, usages: Sequence[ZoneUsage], space: Space | None) -> ZoneUsageView:
    inventoried = zone != Zone.BRONZE
    return ZoneUsageView(
        zone=zone,
        kind=_kind(location),
        assets=sum(usage.assets for usage in usages) if inventoried else None,
        objects=sum(usage.objects for usage in usages),
        bytes=sum(usage.bytes for usage in usages),
        platforms=[
            PlatformUsageView(
                platform_id=usage.platform_id,
                assets=usage.assets if inventoried else None,
                objects=usage.objects,
                bytes=usage.bytes,
            )
            for usage in usages
        ],
        free_bytes=space.free_bytes if space else None,
        total_bytes=space.total_bytes if space else None,
    )


def _kind(location: Location) -> str:
    if isinstance(location, Folder):
        return "folder"
    return "azure" if isinstance(location, AzureAccount) else "s3"
