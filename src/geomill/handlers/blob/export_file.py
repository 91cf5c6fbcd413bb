"""Copies one file of a public asset to the external zone."""

from __future__ import annotations

from geomill.handlers.blob.places import PUBLIC, OutputFile, sha256_of
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Zone, register_handler


class ExportFileParams(OutputFile):
    target: str


@register_handler("blob.export_file", timeout_seconds=3600, params=ExportFileParams, output=OutputFile)
async def export_file(ctx: HandlerContext[ExportFileParams]) -> OutputFile:
    """Copies a file, and compares the hash of the copy with that of the inventory: other bytes never stay outside."""
    given = ctx.params
    target = ObjectName(Zone.EXTERNAL, PUBLIC, given.target)
    await ctx.storage.copy(given.name, target)
    ctx.progress(0.5, message="copied")
    found = await sha256_of(ctx.storage, target)
    if found != given.sha256:
        await ctx.storage.delete(target)
        raise HandlerError(
            f"{given.name} is not what was published: its SHA-256 is {found}, not {given.sha256}", code="hash_mismatch"
        )
    return OutputFile(
        zone=Zone.EXTERNAL,
        container=PUBLIC,
        path=given.target,
        sha256=found,
        size=given.size,
        media_type=given.media_type,
        role=given.role,
    )
