"""The rules for decisions about an asset. Pure: each function takes the asset as it is and returns it as it will be.

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
from geomill.remedies import NEW_REVISION

_A, _C = ApprovalState, ClearanceState


class Operation(StrEnum):
    """The effect of a submission on its asset."""

    CREATED = "created"
    UPDATED = "updated"
    REACTIVATED = "reactivated"


class Outside(StrEnum):
    """The change that a decision requires in the external zone."""

    EXPORT = "export"
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Actor:
    """The person or application that decides. It comes from the credential, never from the request."""

    name: str
    address: str | None = None
    starter: Starter = Starter.PARTNERS
    """The circle as which the actor starts workflows."""
    on_behalf_of: str | None = None
    """The person whom the actor names. Nobody has verified it."""

    def require_priority(self, priority: int) -> None:
        """Raise `Forbidden` if a partner gives a priority above normal. Such work goes first, so only operators may
        order it. 1 is the highest priority."""
        if priority < NORMAL_ASSET_PRIORITY and self.starter is Starter.PARTNERS:
            normal = NORMAL_ASSET_PRIORITY
            raise Forbidden(
                f"the priority {priority} is above normal, which is {normal}; only an operator may give it",
                remedy=f"submit with a priority from {normal} to {LAST_ASSET_PRIORITY}, or ask an operator",
            )

    def retry_priority(self, priority: int) -> int:
        """Return the priority of a request that is retried. A partner's retry does not keep a priority above normal
        that an operator gave."""
        return max(priority, NORMAL_ASSET_PRIORITY) if self.starter is Starter.PARTNERS else priority


@dataclass(frozen=True, slots=True)
class Reviewed:
    asset: Asset
    decision: AuditDecision | None
    """None if the asset does not change."""
    outside: Outside | None = None
    warnings: tuple[str, ...] = ()


def opening(asset: Asset | None, data_type: DataType, *, overwrite: bool) -> Operation:
    """Return what a submission does to this asset. Raises if the submission is not allowed."""
    if asset is None:
        return Operation.CREATED
    if asset.data_type is not data_type:
        raise ConflictError(
            f"the asset {asset.asset_id} holds {asset.data_type.value} data, not {data_type.value}",
            remedy="submit the data under other identifiers",
        )
    if not asset.active:
        return Operation.REACTIVATED
    if overwrite:
        return Operation.UPDATED
    raise AssetExists(
        f"the asset {asset.asset_id} exists: revision {asset.revision}, {asset.processing_status.value},"
        f" {asset.approval_state.value}",
        remedy=NEW_REVISION.http + _or_retry(asset),
    )


def _or_retry(asset: Asset) -> str:
    return ", or retry the request that failed" if asset.processing_status is ProcessingStatus.FAILED else ""


def approve(
    asset: Asset, clearance: ClearanceState, actor: Actor, now: datetime, expected_revision: int | None = None
) -> Reviewed:
    """Approve a revision that is pending review, or change the clearance of an approved one. Nothing changes if it is
    approved with this clearance already."""
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
            f"revision {asset.revision} of {asset.asset_id} cannot be approved: it is {asset.processing_status.value}",
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
        reviewed_on_behalf_of=actor.on_behalf_of,
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
    warning = "the copy in the external zone is hidden; a job deletes its files there"
    return Reviewed(after, decision, Outside.WITHDRAW, (warning,))


def reject(asset: Asset, reason: str, actor: Actor, now: datetime, expected_revision: int | None = None) -> Reviewed:
    require_seen(asset, expected_revision)
    _require_active(asset)
    if asset.approval_state is not _A.PENDING_REVIEW:
        raise AssetState(
            f"{asset.asset_id} is {asset.approval_state.value}, not pending review",
            remedy="revoke it instead" if asset.approval_state is _A.APPROVED else "it is rejected already",
        )
    after = asset.evolve(
        approval_state=_A.REJECTED,
        rejection_reason=reason,
        reviewer=actor.name,
        reviewed_on_behalf_of=actor.on_behalf_of,
        reviewed_at=now,
    )
    return Reviewed(after, AuditDecision.REJECTED)


def revoke(asset: Asset, reason: str, actor: Actor, now: datetime, expected_revision: int | None = None) -> Reviewed:
    """Take back the approval of this revision, or of an earlier one that is still public. Afterwards no route serves
    the asset."""
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
        reviewed_on_behalf_of=actor.on_behalf_of,
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
    """Take the asset out of every list and route. With `delete_data`, a rollback to an existing revision is no longer
    possible, because its files may be deleted at any moment."""
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
    """Return warnings about a rollback. Raises if the outputs of the target cannot become those of a new revision.
    `deleted` means that the target's data was deleted as a leftover."""
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
    return (f"revision {revision} was revoked or unpublished: the rollback brings it back for a new review",)


def outside(asset: Asset) -> bool:
    """Whether the external zone may have files of the asset. A run that has not completed may have left some there."""
    return asset.external_revision is not None or asset.external_run_id != asset.adf_run_id


def check_retried_export(asset: Asset, what: Outside, expected_revision: int | None = None) -> None:
    """Raise unless a failed export or withdrawal may run again: an export requires that the asset is still public."""
    require_seen(asset, expected_revision)
    if what is Outside.EXPORT and asset.public_revision is None:
        raise AssetState(
            f"revision {asset.revision} of {asset.asset_id} is not public: {asset.approval_state.value},"
            f" {asset.clearance_state.value}" + ("" if asset.active else ", unpublished"),
            remedy="approve it as public; that exports it",
        )


def check_current(asset: Asset, request_id: str | None, identifier: str) -> None:
    """Raise `RevisionChanged` if the request is not the asset's latest. A reviewer who decides by the id of a request
    or its job has seen only the data of that request."""
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
