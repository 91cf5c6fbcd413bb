"""Small tables that are followed as a whole: assets that wait for review, and instances."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.sse import ServerSentEvent

from geomill.api.watching import SharedWatch
from geomill.contract.streams import InstanceState, WaitingAsset
from geomill.store import assets, instances
from geomill.store.pool import Pool

SNAPSHOT_SECONDS = 1.0
MOST_ASSETS = 200


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows by their key, and whether there are more than were read."""

    rows: Mapping[str, Mapping[str, Any]]
    more: bool = False

    @property
    def version(self) -> str:
        text = json.dumps([self.rows, self.more], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


async def waiting_for_review(pool: Pool) -> Snapshot:
    async with pool.connection() as conn:
        rows = await assets.waiting_for_review(conn, limit=MOST_ASSETS + 1)
    views = {row["asset_id"]: WaitingAsset.model_validate(row).model_dump(mode="json") for row in rows[:MOST_ASSETS]}
    return Snapshot(views, more=len(rows) > MOST_ASSETS)


async def live_instances(pool: Pool) -> Snapshot:
    async with pool.connection() as conn:
        everyone = await instances.everyone(conn)
    return Snapshot({instance.instance_id: InstanceState.of(instance).model_dump(mode="json") for instance in everyone})


async def follow(watch: SharedWatch[Snapshot], last_version: str) -> AsyncIterator[ServerSentEvent]:
    """Yield all rows at first, unless the listener has this version already, and then each row that changes or goes."""
    number = 0
    rows: Mapping[str, Mapping[str, Any]] | None = None
    while numbered := await watch.next(number):
        number, snapshot = numbered
        version = snapshot.version
        if rows is None:
            if version != last_version:
                data = {"rows": list(snapshot.rows.values()), "more": snapshot.more}
                yield ServerSentEvent(event="snapshot", id=version, data=data)
        else:
            for key in rows.keys() - snapshot.rows.keys():
                yield ServerSentEvent(event="left", id=version, data={"id": key})
            for key, row in snapshot.rows.items():
                if row != rows.get(key):
                    yield ServerSentEvent(event="changed", id=version, data=row)
        rows = snapshot.rows
