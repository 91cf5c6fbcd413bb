"""Assets in the database, with their revisions, requests, jobs and audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString

from geomill.domain.assets.asset import DECIDED_FIELDS, Asset, DataType
from geomill.domain.assets.audit import AuditDecision, AuditEntry
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.naming import Names
from geomill.domain.assets.platform import Refs
from geomill.domain.assets.request import NewRequest, PlatformRequest
from geomill.domain.assets.revision import AssetRevision
from geomill.domain.engine.job import Job
from geomill.domain.ids import canonical_json
from geomill.domain.jsonvalue import to_json
from geomill.domain.states import ApprovalState, ClearanceState, ProcessingStatus
from geomill.errors import NotFoundError
from geomill.remedies import LIST_ASSETS
from geomill.sql import queries
from geomill.store.pool import Connection

MOST = 100


@dataclass(frozen=True, slots=True)
class Identified:
    """The asset, request and job that an id refers to."""

    asset_id: str
    request_id: str | None
    job_id: str | None


@dataclass(frozen=True, slots=True)
class AssetFilter:
    platform_id: str | None = None
    refs: Refs | None = None
    text: str | None = None
    data_type: DataType | None = None
    processing_status: ProcessingStatus | None = None
    approval_state: ApprovalState | None = None
    clearance_state: ClearanceState | None = None
    workflow_id: str | None = None
    deleted: bool = False


async def serialise(conn: Connection, asset_id: str) -> None:
    """Block other submissions of this identity until the transaction ends."""
    await conn.execute(queries("assets").serialise, {"asset_id": asset_id})


async def lock(conn: Connection, asset_id: str) -> Asset | None:
    return await _one(conn, queries("assets").lock, {"asset_id": asset_id})


async def get(conn: Connection, asset_id: str) -> Asset:
    asset = await _one(conn, queries("assets").get, {"asset_id": asset_id})
    if asset is None:
        raise unknown(asset_id)
    return asset


async def identify(conn: Connection, identifier: str) -> Identified:
    """Resolve the id of a request, an asset or a job."""
    row = await (await conn.execute(queries("assets").identify, {"id": identifier})).fetchone()
    if row is None:
        raise unknown(identifier)
    return Identified(**row)


def unknown(identifier: str) -> NotFoundError:
    return NotFoundError(f"there is no request, asset or job '{identifier}'", remedy=LIST_ASSETS.http)


async def collection(conn: Connection, platform_id: str, group: Any, candidates: Iterable[str]) -> str:
    """Return the collection of a group of assets, and create it on first use."""
    group_ref = canonical_json(group)
    parameters = {"platform_id": platform_id, "group_ref": group_ref}
    if collection_id := await _collection(conn, parameters):
        return collection_id
    for candidate in candidates:
        cursor = await conn.execute(
            queries("assets").create_collection, {**parameters, "stac_collection_id": candidate}
        )
        if await cursor.fetchone():
            return candidate
        if collection_id := await _collection(conn, parameters):  # another process was faster
            return collection_id
    raise AssertionError("the last candidate is unique")


async def _collection(conn: Connection, parameters: Mapping[str, Any]) -> str | None:
    row = await (await conn.execute(queries("assets").collection, parameters)).fetchone()
    return row["stac_collection_id"] if row else None


async def create(conn: Connection, request: NewRequest, stac_collection_id: str, candidates: Iterable[Names]) -> Asset:
    """Create the asset of a request, with the first names that no other asset has."""
    parameters = {**_ordered(request), "stac_collection_id": stac_collection_id}
    for names in candidates:
        if created := await _one(conn, queries("assets").create, {**parameters, **asdict(names)}):
            return created
    raise AssertionError("the last candidate is unique")


async def open_revision(conn: Connection, request: NewRequest) -> Asset:
    """Log the current revision and begin the requested one."""
    await conn.execute(queries("assets").log_revision, {"asset_id": request.asset_id})
    opened = await _one(conn, queries("assets").open_revision, _ordered(request))
    assert opened is not None  # the row is locked
    return opened


def _ordered(request: NewRequest) -> dict[str, Any]:
    """Return a request as parameters of its asset's row."""
    return {
        **vars(request),
        "platform_refs": to_json(request.platform_refs),
        "proposed_clearance": request.clearance_level,
        "last_request_id": request.request_id,
    }


async def roll_back(conn: Connection, asset_id: str, revision: int) -> Asset:
    await conn.execute(queries("assets").log_revision, {"asset_id": asset_id})
    opened = await _one(conn, queries("assets").roll_back, {"asset_id": asset_id, "revision": revision})
    assert opened is not None
    return opened


async def decide(conn: Connection, asset: Asset) -> Asset:
    """Store the fields that decisions change. Other fields of the asset are ignored."""
    parameters = {name: getattr(asset, name) for name in DECIDED_FIELDS}
    decided = await _one(conn, queries("assets").decide, {"asset_id": asset.asset_id, **parameters})
    assert decided is not None
    return decided


async def page(
    conn: Connection, chosen: AssetFilter, *, limit: int, before: tuple[datetime, str] | None = None
) -> list[Asset]:
    parameters = page_parameters(chosen, limit=limit, before=before)
    cursor = await conn.execute(page_statement(chosen), parameters, prepare=False)  # replan for the given filters
    return [Asset.from_row(row) for row in await cursor.fetchall()]


async def item_ids(conn: Connection, asset_ids: Iterable[str]) -> dict[str, str]:
    """Return the ids of these assets in the catalogue."""
    distinct = sorted(set(asset_ids))
    if not distinct:
        return {}
    cursor = await conn.execute(queries("assets").item_ids, {"asset_ids": distinct})
    return {row["asset_id"]: row["stac_item_id"] for row in await cursor.fetchall()}


async def waiting_for_review(conn: Connection, *, limit: int) -> list[dict[str, Any]]:
    """Return the assets that wait for a reviewer, the longest waiting first, without their outputs."""
    return await (await conn.execute(queries("assets").waiting_for_review, {"limit": limit})).fetchall()


def page_statement(chosen: AssetFilter) -> LiteralString:
    any_asset = chosen.refs is None and chosen.text is None
    source = queries("assets").any_asset if any_asset else queries("assets").identified_assets
    page_of_source = queries("assets").page
    return f"WITH found AS NOT MATERIALIZED ({source}) {page_of_source}"


def page_parameters(chosen: AssetFilter, *, limit: int, before: tuple[datetime, str] | None = None) -> dict[str, Any]:
    moment, last = before or (None, None)
    return {
        **asdict(chosen),
        "refs": None if chosen.refs is None else to_json(chosen.refs),
        "text": None if chosen.text is None else _like(json.dumps(chosen.text, ensure_ascii=False)[1:-1]),
        "title": None if chosen.text is None else _like(chosen.text),
        "before": moment,
        "before_id": last,
        "limit": limit,
    }


def _like(text: str) -> str:
    """Return a pattern that matches the text anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


async def revisions(conn: Connection, asset_id: str, limit: int = MOST) -> list[AssetRevision]:
    cursor = await conn.execute(queries("assets").revisions, {"asset_id": asset_id, "limit": limit})
    return [AssetRevision.from_row(row) for row in await cursor.fetchall()]


async def revision(conn: Connection, asset_id: str, number: int) -> AssetRevision | None:
    cursor = await conn.execute(queries("assets").revision, {"asset_id": asset_id, "revision": number})
    row = await cursor.fetchone()
    return AssetRevision.from_row(row) if row else None


async def requests(conn: Connection, asset_id: str, limit: int = MOST) -> list[PlatformRequest]:
    cursor = await conn.execute(queries("requests").of_asset, {"asset_id": asset_id, "limit": limit})
    return [PlatformRequest.from_row(row) for row in await cursor.fetchall()]


async def jobs(conn: Connection, asset_id: str, limit: int = MOST) -> list[Job]:
    cursor = await conn.execute(queries("assets").jobs, {"asset_id": asset_id, "limit": limit})
    return [Job.from_row(row) for row in await cursor.fetchall()]


async def open_jobs(conn: Connection, asset_id: str) -> list[str]:
    """Return the jobs that may still write data of the asset."""
    cursor = await conn.execute(queries("assets").open_jobs, {"asset_id": asset_id})
    return [row["job_id"] for row in await cursor.fetchall()]


async def audit(conn: Connection, asset_id: str, limit: int = MOST) -> list[AuditEntry]:
    cursor = await conn.execute(queries("audit").of_asset, {"asset_id": asset_id, "limit": limit})
    return [AuditEntry.from_row(row) for row in await cursor.fetchall()]


async def review_decisions(
    conn: Connection, *, since: datetime | None, limit: int, before: tuple[datetime, int] | None = None
) -> list[dict[str, Any]]:
    """Return what reviewers decided about all assets, the newest first."""
    at, audit_id = before or (None, None)
    parameters = {"since": since, "before": at, "before_id": audit_id, "limit": limit}
    return await (await conn.execute(queries("audit").reviews, parameters)).fetchall()


async def await_request(conn: Connection, asset_id: str, request_id: str) -> None:
    """Let the current revision wait for another request."""
    await conn.execute(queries("assets").await_request, {"asset_id": asset_id, "request_id": request_id})


async def note(
    conn: Connection,
    decision: AuditDecision,
    actor: Actor,
    after: Asset,
    before: Asset | None = None,
    *,
    reason: str | None = None,
    job_id: str | None = None,
) -> None:
    """Add an audit line in the transaction of the decision."""
    parameters = {
        "asset_id": after.asset_id,
        "revision": after.revision,
        "decision": decision,
        "actor": actor.name,
        "on_behalf_of": actor.on_behalf_of,
        "client_address": actor.address,
        "reason": reason,
        "before": to_json(_state(before)),
        "after": to_json(_state(after)),
        "request_id": after.last_request_id,
        "job_id": job_id,
    }
    await conn.execute(queries("audit").add, parameters)


def _state(asset: Asset | None) -> dict[str, Any]:
    if asset is None:
        return {}
    return {
        "revision": asset.revision,
        "processing_status": asset.processing_status.value,
        "approval_state": asset.approval_state.value,
        "clearance_state": asset.clearance_state.value,
        "deleted": not asset.active,
        "data_deleted_through": asset.data_deleted_through,
    }


async def _one(conn: Connection, statement: LiteralString, parameters: Mapping[str, Any]) -> Asset | None:
    row = await (await conn.execute(statement, parameters)).fetchone()
    return Asset.from_row(row) if row else None
