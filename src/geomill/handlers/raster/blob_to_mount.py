"""Copies a source to this machine, for layouts in which reading windows of a remote file is too expensive."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.datasets.intermediates import mounted
from geomill.datasets.source import Source
from geomill.sdk import HandlerContext, register_handler


class BlobToMountParams(BaseModel):
    source: Source


class BlobToMountOutput(BaseModel):
    path: str
    """A path on the machine that ran the task."""
    size_bytes: int
    source_file_hash: str


@register_handler(
    "raster.blob_to_mount",
    queue="container-tasks",
    timeout_seconds=7200,
    params=BlobToMountParams,
    output=BlobToMountOutput,
)
def blob_to_mount(ctx: HandlerContext[BlobToMountParams]) -> BlobToMountOutput:
    """Copies a source to this machine. Resumes an interrupted copy."""
    target = mounted(ctx.job_id, ctx.params.source.file_name)

    def progress(done: int, total: int) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(done, total, f"{done:,} of {total:,} bytes")

    stored = ctx.storage.sync.get_file(ctx.params.source.name, target, progress=progress)
    return BlobToMountOutput(path=str(target), size_bytes=stored.size, source_file_hash=stored.sha256)
