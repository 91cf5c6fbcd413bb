"""The catalogue follows the assets: a decision writes the entry of its asset at once, and a duty writes all others.

    an asset changes → the trigger follow_asset notes it → one transaction writes the entry and deletes the note

The end of a job only leaves the note, because its statement drives many jobs and must not wait for a collection that
somebody else writes. The orchestrator that wrote the end wakes the duty. The duty takes the notes of one collection,
locks the collection only if it is free, and writes all entries in one statement. If the database refuses them, it
writes them one by one, and postpones those that are refused.

No two writers wait for each other. The duty takes first a collection and then notes, and waits for neither. A decision
has its asset and note before it waits for the collection, for a quarter of a second at most; then it leaves the entry
to the duty, and the entry is withheld meanwhile.

No entry takes more than half a minute, and one that was refused takes at most a tenth of the duty's time.

Weakness: an entry that can never be stored is tried every five minutes until a new revision replaces it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import psycopg

from geomill.catalogue import pending
from geomill.catalogue.entries import InvalidEntry
from geomill.catalogue.pending import DueAsset
from geomill.catalogue.writing import build_entry, shown_assets, write_entries
from geomill.domain.jsonvalue import NotJson
from geomill.errors import UnavailableError
from geomill.sql import queries
from geomill.store.duties import Duties
from geomill.store.passing import passes, spoils_session
from geomill.store.pool import Connection, Pool

log = logging.getLogger(__name__)

BATCH = 500
LARGEST_BATCH_BYTES = 8_000_000
"""The size of stored outputs, which are compressed. One asset may have more."""
BUSY_SECONDS = 0.1
COST_SHARE = 10.0
"""An entry that was refused is not tried again before this many times the time that it took."""
REFUSALS = (psycopg.Error, InvalidEntry, NotJson)


@dataclass
class Followed:
    """The outcome of one run of the duty."""

    written: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Asset to reason."""
    busy: bool = False
    """Whether somebody else was writing a collection or changing an asset."""


@dataclass
class CatalogueFollower:
    """The duty. Runs beside everything else, and costs no query while nobody wakes it."""

    pool: Pool
    duties: Duties | None = None
    """Where failures are noted, so that /health shows them."""

    def __post_init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                followed = await self.run_once()
                await self._report(followed)
            except psycopg.Error as error:
                log.warning("catalogue entries cannot be written, the next look tries again: %s", error)
                if self.duties:
                    self.duties.failed("catalogue", error)
                continue
            if followed.busy:
                asyncio.get_running_loop().call_later(BUSY_SECONDS, self.wake)

    async def run_once(self) -> Followed:
        """Write the entries that are due."""
        followed = Followed()
        async with self.pool.connection() as conn:
            while due := await pending.due(conn, BATCH):
                before = len(followed.written) + len(followed.refused)
                for collection in _by_collection(due):
                    await _follow_collection(conn, collection, followed)
                if len(followed.written) + len(followed.refused) == before:
                    break  # all of them are busy
        return followed

    async def _report(self, followed: Followed) -> None:
        """Note failures. The duty passes again when no entry is overdue any more."""
        for asset_id, reason in followed.refused.items():
            log.warning("the catalogue entry of %s is not written: %s", asset_id, reason)
            if self.duties:
                error = UnavailableError(f"the entry of {asset_id} is not written: {reason}")
                self.duties.failed("catalogue", error)
        if self.duties and not followed.refused:
            async with self.pool.connection() as conn:
                if not (await pending.overdue(conn)).count:
                    self.duties.passed("catalogue")


async def follow_decision(conn: Connection, asset_id: str, *, withhold: bool = True) -> None:
    """Write the entry of an asset in the transaction of the decision that changed it, as its last statement. A failure
    leaves the note, and the decision stands. The present entry is withheld until the duty has written the new one,
    unless the decision changes only how the data looks."""
    if not await pending.lock(conn, [asset_id]):
        return  # the decision changed nothing that the catalogue shows
    try:
        async with conn.transaction():
            await conn.execute(queries("catalogue").limit_waits)
            await _write(conn, [asset_id])
    except REFUSALS as error:
        if spoils_session(error):
            raise
        if withhold:
            await pending.postpone(conn, asset_id, _reason(error))


def _by_collection(due: Iterable[DueAsset]) -> list[list[DueAsset]]:
    """The due assets in batches of one collection each, none of which is too large to be built in memory."""
    batches: list[list[DueAsset]] = []
    latest: dict[str, list[DueAsset]] = {}
    for asset in due:
        batch = latest.get(asset.collection_id)
        if batch is None or sum(other.size for other in batch) + asset.size > LARGEST_BATCH_BYTES:
            batch = latest[asset.collection_id] = []
            batches.append(batch)
        batch.append(asset)
    return batches


async def _follow_collection(conn: Connection, batch: Sequence[DueAsset], followed: Followed) -> None:
    begun = time.monotonic()
    try:
        async with conn.transaction():
            free = await _lock(conn, batch)
            if free:
                await _write(conn, free)
    except psycopg.errors.LockNotAvailable:
        followed.busy = True
    except REFUSALS as error:
        if passes(error) and not isinstance(error, psycopg.errors.QueryCanceled):
            raise
        if len(batch) == 1:
            followed.refused[batch[0].asset_id] = _reason(error)
            seconds = COST_SHARE * (time.monotonic() - begun)
            await pending.postpone(conn, batch[0].asset_id, _reason(error), seconds)
            return
        for asset in batch:
            await _follow_collection(conn, [asset], followed)
    else:
        followed.written += free
        followed.busy |= len(free) < len(batch)


async def _lock(conn: Connection, batch: Sequence[DueAsset]) -> list[str]:
    """Returns the assets whose entries can be written now. None if somebody else writes the collection."""
    await conn.execute(queries("catalogue").limit_waits)
    parameters = {"collection_id": batch[0].collection_id}
    row = await (await conn.execute(queries("catalogue").try_collection, parameters)).fetchone()
    return await pending.lock(conn, [asset.asset_id for asset in batch]) if row and row["locked"] else []


async def _write(conn: Connection, asset_ids: Sequence[str]) -> None:
    await write_entries(conn, [build_entry(asset) for asset in await shown_assets(conn, asset_ids)])
    await pending.clear(conn, asset_ids)


def _reason(error: Exception) -> str:
    return (isinstance(error, psycopg.Error) and error.diag.message_primary) or str(error)
