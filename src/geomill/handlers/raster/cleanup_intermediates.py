"""Deletes intermediates of jobs. It runs on a schedule, so that a failed job can be examined first."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.datasets.intermediates import DRAFT_PREFIX, folder_of, mount
from geomill.datasets.outputs import INTERMEDIATE_CONTAINER
from geomill.sdk import HandlerContext, Zone, register_handler


class CleanupParams(BaseModel):
    job_id: str | None = None
    """Delete only those of this job, whatever its age."""
    older_than_hours: Annotated[float, Field(ge=0)] = 72.0


class CleanupOutput(BaseModel):
    deleted_objects: int
    deleted_copies: int


@register_handler(
    "raster.cleanup_intermediates",
    queue="container-tasks",
    timeout_seconds=3600,
    params=CleanupParams,
    output=CleanupOutput,
)
def cleanup_intermediates(ctx: HandlerContext[CleanupParams]) -> CleanupOutput:
    """Deletes the intermediates of one job, or all old ones."""
    params, storage = ctx.params, ctx.storage.sync
    if params.job_id:
        folder = folder_of(params.job_id)
        deleted = storage.delete_prefix(Zone.SILVER, INTERMEDIATE_CONTAINER, folder)
        copies = mount() / folder
        had_copies = copies.exists()
        shutil.rmtree(copies, ignore_errors=True)
        return CleanupOutput(deleted_objects=deleted, deleted_copies=int(had_copies))
    limit = datetime.now(UTC) - timedelta(hours=params.older_than_hours)
    old = [info.name for info in storage.list(Zone.SILVER, INTERMEDIATE_CONTAINER) if info.modified <= limit]
    for number, name in enumerate(old, 1):
        ctx.raise_if_cancelled()
        storage.delete(name)
        ctx.progress(number, len(old), f"{number} of {len(old)} objects")
    return CleanupOutput(deleted_objects=len(old), deleted_copies=_old_copies(params.older_than_hours))


def _old_copies(hours: float) -> int:
    """Delete old copies and drafts on this machine. Returns their number."""
    limit = time.time() - hours * 3600
    left_behind = mount().parent.glob(f"{DRAFT_PREFIX}*")  # left by killed tasks
    folders = [*mount().glob("*"), *left_behind]
    old = [folder for folder in folders if _is_ours(folder) and folder.stat().st_mtime <= limit]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
    return len(old)


def _is_ours(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid()
