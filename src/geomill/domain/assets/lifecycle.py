"""What may be done to an asset, and what it becomes. Pure: the asset as it is goes in, as it will be comes out.

submit ─► approve(ouo | public) ─► … ─► unpublish ─► submit again
      └─► reject ─► submit with overwrite
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from geomill.domain.assets.asset import LAST_ASSET_PRIORITY, NORMAL_ASSET_PRIORITY, Asset, DataType
from geomill.domain.assets.audit import AuditDecision
from geomill.domain.assets.revision import AssetRevision
from geomill.domain.engine.starting import Starter
from geomill.domain.states import (
    APPROVAL_MACHINE,
    CLEARANCE_MACHINE,
    ApprovalState,
    ClearanceState,
    ProcessingStatus,
)
from geomill.errors import AssetExists, AssetState, ConflictError, Forbidden, RevisionChanged

_A, _C = ApprovalState, ClearanceState


class Operation(StrEnum):
    """What a submission does."""

    CREATED = "created"
    UPDATED = "updated"
    REACTIVATED = "reactivated"


class Outside(StrEnum):
    """What has to happen in the external zone."""

    EXPORT = "export"
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who decides: from the credential, never from what the caller says."""

    name: str
    address: str | None = None
    starter: Starter = Starter.PARTNERS
    """As whom it starts workflows."""

    def require_priority(self, priority: int) -> None:
        """Raise `Forbidden` for a priority above normal, unless an operator gives it: such work goes before everybody
        else's. 1 is first."""
        if priority < NORMAL_ASSET_PRIORITY and self.starter is Starter.PARTNERS:
            normal = NORMAL_ASSET_PRIORITY
            raise Forbidden(
                f"the priority {priority} is above normal, which is {normal}, and only an operator may give it",
                remedy=f"submit with a priority from {normal} to {LAST_ASSET_PRIORITY}, or ask an operator",
            )

    def retry_priority(self, priority: int) -> int:
        """The priority of a request that is run again: what an operator gave for the first run holds for that run."""
        return max(priority, NORMAL_ASSET_PRIORITY) if self.starter is Starter.PARTNERS else priority


@dataclass(frozen=True, slots=True)
class Reviewed:
    asset: Asset
    decision: AuditDecision | None
    """None if nothing changes."""
    outside: Outside | None = None
    warnings: tuple[str, ...] = ()


def opening(asset: Asset | None, data_type: DataType, *, overwrite: bool) -> Operation:
    """What a submission of this identity does, or why it may not."""
    if asset is None:
        return Operation.CREATED
    if asset.data_type is not data_type:
        raise ConflictError(
            f"the asset {asset.asset_id} holds {asset.data_type.value} data, not {data_type.value}",
            remedy="submit it under other identifiers",
        )
    if not asset.active:
        return Operation.REACTIVATED
    if overwrite:
        return Operation.UPDATED
    raise AssetExists(
        f"the asset {asset.asset_id} exists: revision {asset.revision}, {asset.processing_status.value},"
        f" {asset.approval_state.value}",
        remedy="submit with overwrite=true to make a new revision" + _or_retry(asset),
    )


def _or_retry(asset: Asset) -> str:
    return ", or retry the request that failed" if asset.processing_status is ProcessingStatus.FAILED else ""


def approve(
    asset: Asset, clearance: ClearanceState, actor: Actor, now: datetime, expected_revision: int | None = None
) -> Reviewed:
    """From pending review; or, of an approved asset, a change of its clearance. The clearance that it has already
    changes nothing."""
    require_seen(asset, expected_revision)
    _require_active(asset)
    if asset.approval_state is _A.APPROVED and asset.clearance_state is clearance:
        return Reviewed(asset, None)
    if asset.approval_state is _A.REJECTED:
        raise AssetState(
            f"revision {asset.revision} of {asset.asset_id} was rejected: {asset.rejection_reason}",
            remedy="submit corrected data with overwrite=true, then review that",
        )
    if asset.processing_status is not ProcessingStatus.COMPLETED:
        raise AssetState(
            f"revision {asset.revision} of {asset.asset_id} is {asset.processing_status.value}: nothing to approve yet",
            remedy="wait until processing_status is completed, or retry the request",
        )
    if asset.approval_state is not _A.APPROVED:
        APPROVAL_MACHINE.check(asset.approval_state, _A.APPROVED)
    if asset.clearance_state is not clearance:
        CLEARANCE_MACHINE.check(asset.clearance_state, clearance)
    public, first = clearance is _C.PUBLIC, asset.clearance_state is _C.UNCLEARED
    made_public = public and asset.clearance_state is not _C.PUBLIC
    after = asset.evolve(
        approval_state=_A.APPROVED,
        clearance_state=clearance,
        reviewer=actor.name,
        reviewed_at=now,
        cleared_at=now if first else asset.cleared_at,
        cleared_by=actor.name if first else asset.cleared_by,
        made_public_at=now if made_public else asset.made_public_at,
        made_public_by=actor.name if made_public else asset.made_public_by,
        kept_public_revision=None,
    )
    decision = AuditDecision.CLEARANCE_CHANGED if asset.approval_state is _A.APPROVED else AuditDecision.APPROVED
    if public:
        return Reviewed(after, decision, Outside.EXPORT)
    if not outside(asset):
        return Reviewed(after, decision)
    warning = "the copy in the external zone is hidden; its files there are deleted by a job"
    return Reviewed(after, decision, Outside.WITHDRAW, (warning,))


def reject(asset: Asset, reason: str, actor: Actor, now: datetime, expected_revision: int | None = None) -> Reviewed:
    require_seen(asset, expected_revision)
    _require_active(asset)
    if asset.approval_state is not _A.PENDING_REVIEW:
        raise AssetState(
            f"{asset.asset_id} is {asset.approval_state.value}, not pending review",
            remedy="revoke it instead" if asset.approval_state is _A.APPROVED else "it has been rejected already",
        )
    after = asset.evolve(approval_state=_A.REJECTED, rejection_reason=reason, reviewer=actor.name, reviewed_at=now)
    return Reviewed(after, AuditDecision.REJECTED)


def revoke(asset: Asset, reason: str, actor: Actor, now: datetime, expected_revision: int | None = None) -> Reviewed:
    """The approval was wrong, of this revision or of an earlier one that is still public. The asset is taken out of
    every service, and its approval with it."""
    require_seen(asset, expected_revision)
    _require_active(asset)
    if asset.approval_state is not _A.APPROVED and asset.public_revision is None:
        raise AssetState(
            f"{asset.asset_id} is {asset.approval_state.value}: there is no approval to revoke",
            remedy="reject it instead",
        )
    after = asset.evolve(
        approval_state=_A.REJECTED,
        rejection_reason=reason,
        clearance_state=_C.UNCLEARED,
        reviewer=actor.name,
        reviewed_at=now,
        deleted_at=now,
        deleted_by=actor.name,
        withdrawn_through=asset.revision,
        kept_public_revision=None,
    )
    return Reviewed(after, AuditDecision.REVOKED, Outside.WITHDRAW if outside(asset) else None)


def unpublish(
    asset: Asset, actor: Actor, now: datetime, expected_revision: int | None = None, *, delete_data: bool = False
) -> Reviewed:
    """With `delete_data`, no revision so far can be gone back to, from now on: its files may be gone any moment."""
    require_seen(asset, expected_revision)
    _require_active(asset)
    through = asset.revision if delete_data else asset.data_deleted_through
    after = asset.evolve(
        deleted_at=now,
        deleted_by=actor.name,
        data_deleted_through=through,
        withdrawn_through=asset.revision,
        kept_public_revision=None,
    )
    return Reviewed(after, AuditDecision.UNPUBLISHED, Outside.WITHDRAW if outside(asset) else None)


def check_rollback(
    asset: Asset,
    target: AssetRevision | None,
    revision: int,
    expected_revision: int | None = None,
    *,
    deleted: bool = False,
) -> tuple[str, ...]:
    """Warnings. Raises unless the outputs of the target may become those of a new revision. `deleted`: its data was
    deleted when its time was over."""
    require_seen(asset, expected_revision)
    _require_active(asset)
    if revision == asset.revision:
        raise AssetState(f"revision {revision} of {asset.asset_id} is the current one", remedy="choose an earlier one")
    if target is None:
        raise AssetState(
            f"{asset.asset_id} has no revision {revision}", remedy=f"choose one from 1 to {asset.revision - 1}"
        )
    if target.outputs is None:
        raise AssetState(f"revision {revision} of {asset.asset_id} never completed", remedy="choose another one")
    if deleted or revision <= asset.data_deleted_through:
        raise AssetState(
            f"the data of revision {revision} of {asset.asset_id} was deleted", remedy="submit the source again"
        )
    if revision > asset.withdrawn_through:
        return ()
    return (f"revision {revision} was revoked or unpublished: this brings it back, to be reviewed again",)


def outside(asset: Asset) -> bool:
    """Whether something is in the external zone, or may be: a run that has not completed may have left files there."""
    return asset.external_revision is not None or asset.external_run_id != asset.adf_run_id


def check_retried_export(asset: Asset, what: Outside, expected_revision: int | None = None) -> None:
    """A run that failed is started again only while the asset is still to be where the run brings it."""
    require_seen(asset, expected_revision)
    if what is Outside.EXPORT and asset.public_revision is None:
        raise AssetState(
            f"revision {asset.revision} of {asset.asset_id} is not public: {asset.approval_state.value},"
            f" {asset.clearance_state.value}" + ("" if asset.active else ", unpublished"),
            remedy="approve it as public; that exports it",
        )


def check_current(asset: Asset, request_id: str | None, identifier: str) -> None:
    """Who decides by the id of a request or its job has looked at that one's data, and at no other."""
    if request_id is not None and request_id != asset.last_request_id:
        raise RevisionChanged(
            f"'{identifier}' was for an earlier revision: {asset.asset_id} is at revision {asset.revision}",
            remedy="look at it again, then decide by asset_id",
        )


def require_seen(asset: Asset, expected_revision: int | None) -> None:
    if expected_revision is not None and expected_revision != asset.revision:
        raise RevisionChanged(
            f"{asset.asset_id} is at revision {asset.revision}, not at {expected_revision}",
            remedy="look at it again, then decide",
        )


def _require_active(asset: Asset) -> None:
    if not asset.active:
        raise AssetState(
            f"{asset.asset_id} was unpublished by {asset.deleted_by}", remedy="submit it again to bring it back"
        )
