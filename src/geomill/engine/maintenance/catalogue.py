"""Brings the catalogue up to date where it could not be written together with the asset.

An asset's entry is written in the transaction that changes the asset. If that would have had to wait, or the database
refused the item, the asset was noted instead, and is tried here, later and later each time it fails. What it does
badly: an item that is none is tried for ever, every five minutes; /health and the doctor name the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from geomill.store import pending
from geomill.store.pool import Connection


@dataclass
class Settled:
    assets: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Asset to reason."""


@dataclass(frozen=True)
class CatalogueFollower:
    batch: int = 20

    async def run_once(self, conn: Connection) -> Settled:
        settled = Settled()
        for asset_id in await pending.due(conn, self.batch):
            reason = await pending.settle(conn, asset_id)
            if reason is None:
                settled.assets.append(asset_id)
            else:
                settled.failed[asset_id] = reason
        return settled
