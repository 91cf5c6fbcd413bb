"""The use of storage as responses."""

from __future__ import annotations

from collections.abc import Sequence

from geomill.api.views.uploads import upload_view
from geomill.contract.operations import CleanupView, OldRevisionView
from geomill.domain.assets.upload import Upload
from geomill.store.leftovers import Leftover


def cleanup_view(
    leftovers: Sequence[Leftover], uploads: Sequence[Upload], jobs: int, limit: int, expire_hours: float
) -> CleanupView:
    return CleanupView(
        revisions=[_revision(leftover) for leftover in leftovers[:limit]],
        uploads=[upload_view(upload, expire_hours) for upload in uploads[:limit]],
        jobs=jobs,
        more=len(leftovers) > limit or len(uploads) > limit,
    )


def _revision(leftover: Leftover) -> OldRevisionView:
    return OldRevisionView(
        asset_id=leftover.asset_id,
        revision=leftover.revision,
        job_id=leftover.job_id,
        reason="superseded" if leftover.completed else "failed",
        ended_at=leftover.ended_at,
        bytes=leftover.bytes,
    )
