"""Uploads as responses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from geomill.contract.uploads import UploadView
from geomill.domain.assets.upload import Upload, UploadStatus


def expiry(upload: Upload, hours: float) -> datetime | None:
    """Return when an unfinished upload is removed unless more bytes come."""
    if upload.status is UploadStatus.COMPLETE:
        return None
    return (upload.updated_at + timedelta(hours=hours)).astimezone(UTC)


def upload_view(upload: Upload, hours: float) -> UploadView:
    fields = {name: getattr(upload, name) for name in UploadView.model_fields if name != "expires_at"}
    return UploadView(**fields, expires_at=expiry(upload, hours))
