"""Removes old uploads: unfinished ones that get no more bytes, failed ones, and files that nobody needs any more.

A complete file goes after one time if no request ever named it, and after another if all requests that did have ended.
A request that runs, or that failed and may be retried, keeps its file. Files that came into bronze in another way are
not touched.

Weakness: a submission in the very moment in which a file is removed is accepted, and its job finds no file.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import timedelta

from geomill.domain.assets.upload import Upload
from geomill.engine.maintenance.batches import repeat_batches
from geomill.errors import ConflictError, NotFoundError
from geomill.settings import RetentionSettings, UploadSettings
from geomill.storage import NO_STORAGE, Storage
from geomill.store import uploads
from geomill.store.duties import Duties
from geomill.store.pool import Pool
from geomill.store.uploads import UploadAges
from geomill.uploads.removing import remove_upload

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OldUploadOptions:
    ages: UploadAges = field(default_factory=UploadAges)
    look_seconds: float = 300.0
    batch: int = 50

    @classmethod
    def of(cls, limits: UploadSettings, retention: RetentionSettings) -> OldUploadOptions:
        return cls(upload_ages(limits, retention))


def upload_ages(limits: UploadSettings, retention: RetentionSettings) -> UploadAges:
    return UploadAges(
        timedelta(hours=limits.upload_expire_hours),
        _days(retention.keep_unused_uploads_days),
        _days(retention.keep_sources_days),
    )


def _days(days: float) -> timedelta | None:
    return timedelta(days=days) if days else None


@dataclass
class OldUploads:
    pool: Pool
    storage: Storage = NO_STORAGE
    options: OldUploadOptions = field(default_factory=OldUploadOptions)
    duties: Duties | None = None

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop, because it waits for the object store."""
        if self.storage is NO_STORAGE:
            await asyncio.Event().wait()
        options = self.options
        await repeat_batches(
            "uploads", self.run_once, batch=options.batch, look_seconds=options.look_seconds, duties=self.duties
        )

    async def run_once(self) -> int:
        """Remove one batch of old uploads. Returns how many were removed."""
        async with self.pool.connection() as conn:
            due = await uploads.due(conn, self.options.ages, self.options.batch)
        return sum([await self._remove(upload) for upload in due])

    async def _remove(self, upload: Upload) -> bool:
        try:
            await remove_upload(self.pool, self.storage, upload)
        except (ConflictError, NotFoundError):  # somebody uses it, or another orchestrator was faster
            return False
        log.info(
            "removed the upload %s of %s, which was %s",
            upload.upload_id,
            upload.platform_id,
            upload.status.value,
            extra={"action": "uploads", "platform_id": upload.platform_id},
        )
        return True
