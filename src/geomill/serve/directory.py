"""Looks up an asset as one caller may see it.

A result is cached for `FRESH_SECONDS`, which is how long a revoked or unpublished asset may still be seen. Misses are
not cached, so a new asset appears at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from geomill.domain.access.visibility import Sight
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.served import Scene, Series, Served
from geomill.domain.objectname import Zone
from geomill.errors import NotFoundError, Unauthenticated
from geomill.raster.rendering import kind_of, stretches
from geomill.remedies import NEW_LINK
from geomill.store import extracts, serving
from geomill.store.extracts import OrderedExtract
from geomill.store.pool import Pool
from geomill.store.serving import Bounds, Faces, FeatureTable, Page

FRESH_SECONDS = 1.0
MOST_KEPT = 5_000
MOST_RESULTS = 50
MOST_SERIES = 50
PATIENCE_SECONDS = 5.0
LONGEST_ID = 64


@dataclass(frozen=True, slots=True)
class _Entry:
    faces: Faces
    looked_at: float


class Directory:
    def __init__(self, pool: Pool, zone: Zone) -> None:
        self.zone = zone
        self._pool = pool
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._looking: dict[str, asyncio.Task[Faces | None]] = {}
        self._tables: OrderedDict[tuple[str, int, str], FeatureTable] = OrderedDict()
        self._scenes: OrderedDict[tuple[str, int, str], Served] = OrderedDict()
        self._series: OrderedDict[tuple[str, int], Series] = OrderedDict()
        self._results: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def asset(self, asset_id: str, sight: Sight, data_type: DataType | None = None) -> Served:
        """Return the asset. Raises `NotFoundError` if it does not exist, has another data type or may not be seen; the
        caller cannot tell which."""
        faces = await self._find(asset_id)
        served = faces.shown_to(sight) if faces else None
        if served is None or data_type not in (None, served.data_type):
            raise NotFoundError(f"the asset '{asset_id[:LONGEST_ID]}' does not exist or you may not see it")
        return served

    async def require_link(self, asset_id: str, withdrawn_through: int) -> None:
        """Raise `Unauthenticated` if the asset was revoked or unpublished since a signed link for it was made."""
        faces = await self._find(asset_id)
        if faces is not None and faces.newest.withdrawn_through != withdrawn_through:
            raise Unauthenticated("the link is no longer valid", remedy=NEW_LINK.http)

    async def raster(self, name: str, sight: Sight) -> Served:
        """Return a raster by the asset's id or, for a scene of a series, `{asset_id}.{scene_id}`. The scenes of a
        revision never change, so each is read once."""
        asset_id, _, scene = name.partition(".")
        served = await self.asset(asset_id, sight, DataType.RASTER)
        if not scene:
            return served
        key = (served.asset_id, served.revision, scene)
        if key not in self._scenes:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                scene_served = await serving.scene(conn, self.zone, served, scene)
            if scene_served is None:
                raise NotFoundError(f"the asset '{asset_id}' has no scene '{scene[:LONGEST_ID]}'")
            self._scenes[key] = scene_served
            if len(self._scenes) > MOST_KEPT:
                self._scenes.popitem(last=False)
        states = ("approval_state", "clearance_state", "public_revision", "withdrawn_through", "styles")
        return self._scenes[key].model_copy(update={name: getattr(served, name) for name in states})

    async def series(self, served: Served) -> Series:
        """Return the scenes of a series, without histograms, which would be most of the cached data."""
        key = (served.asset_id, served.revision)
        if key not in self._series:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                scenes = await serving.scenes(conn, self.zone, served)
            self._series[key] = await asyncio.to_thread(_slim, scenes)
            if len(self._series) > MOST_SERIES:
                self._series.popitem(last=False)
        return self._series[key]

    async def job_result(self, job_id: str) -> dict[str, Any] | None:
        """Return the result of a completed job. It never changes, so it is read once."""
        if job_id not in self._results:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                result = await serving.job_result(conn, job_id)
            if result is None:
                return None
            self._results[job_id] = result
            if len(self._results) > MOST_RESULTS:
                self._results.popitem(last=False)
        return self._results[job_id]

    async def extract(self, asset_id: str, extract_id: str, sight: Sight) -> OrderedExtract:
        """Return an extract, always as the database has it now. Raises `NotFoundError` if it does not exist any more or
        may not be seen."""
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            ordered = await extracts.get(conn, asset_id, extract_id)
        if ordered is None or not ordered.visible_to(sight):
            raise NotFoundError(
                f"the asset '{asset_id[:LONGEST_ID]}' has no extract '{extract_id[:LONGEST_ID]}' for you",
                remedy="order it again",
            )
        return ordered

    async def page(
        self,
        sight: Sight,
        data_type: DataType | None = None,
        *,
        bbox: Bounds | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Page:
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            return await serving.page(
                conn, self.zone, sight, data_type=data_type, bbox=bbox, limit=limit, offset=offset
            )

    async def tables(self, assets: list[Served]) -> dict[tuple[str, str], FeatureTable]:
        """Return the tables of these assets, by asset and part. A served table never changes, so each is read once."""
        names = {
            (asset.asset_id, asset.revision, part): name for asset in assets for part, name in asset.layers.items()
        }
        lacking = {key: name for key, name in names.items() if key not in self._tables}
        if lacking:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                tables = await serving.tables(conn, list(lacking.values()))
            for key, name in lacking.items():
                if name in tables:
                    self._tables[key] = tables[name]
        result = {(key[0], key[2]): self._tables[key] for key in names if key in self._tables}
        while len(self._tables) > MOST_KEPT:
            self._tables.popitem(last=False)
        return result

    async def _find(self, asset_id: str) -> Faces | None:
        entry = self._entries.get(asset_id)
        if entry and time.monotonic() - entry.looked_at < FRESH_SECONDS:
            return entry.faces
        if not asset_id or len(asset_id) > LONGEST_ID or not asset_id.isalnum() or not asset_id.isascii():
            return None
        looking = self._looking.get(asset_id)
        if looking is None:
            looking = self._looking[asset_id] = asyncio.create_task(self._look_up(asset_id))
            looking.add_done_callback(lambda _: self._looking.pop(asset_id, None))
        return await asyncio.shield(looking)

    async def _look_up(self, asset_id: str) -> Faces | None:
        """Look up an asset, once for all concurrent requests."""
        begun = time.monotonic()
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            faces = await serving.find(conn, self.zone, asset_id)
        self._entries.pop(asset_id, None)
        if faces is not None:
            self._entries[asset_id] = _Entry(faces, begun)
            if len(self._entries) > MOST_KEPT:
                self._entries.popitem(last=False)
        return faces


def _slim(scenes: dict[str, Scene]) -> Series:
    def slimmed(scene: Scene) -> Scene:
        kind = kind_of(scene.raster_type)
        return scene.model_copy(update={"statistics": stretches(kind, scene.statistics)})

    ordered = sorted(scenes, key=lambda name: (scenes[name].rank, name))
    return Series({name: slimmed(scenes[name]) for name in ordered})
