"""Checks what a pipeline has copied, and moves it to its public place."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.domain.engine.job import JobPurpose
from geomill.errors import NotFoundError
from geomill.handlers.blob.pipeline import arriving, target_of
from geomill.handlers.blob.places import sha256_of
from geomill.sdk import HandlerContext, HandlerError, ObjectName, register_handler
from geomill.sdk.orders import AssetOrder


class AcceptFilesParams(BaseModel):
    asset_id: str
    first: int
    count: int


class AcceptFilesOutput(BaseModel):
    files: int
    size: int


@register_handler("blob.accept_files", timeout_seconds=3600, params=AcceptFilesParams, output=AcceptFilesOutput)
async def accept_files(ctx: HandlerContext[AcceptFilesParams]) -> AcceptFilesOutput:
    """Compares size and hash of each file with the inventory, and moves it into place while the asset is locked as
    public. A file that an earlier attempt has moved is checked in its place."""
    params = ctx.params
    order = await ctx.orders.current(params.asset_id, ctx.job_id, JobPurpose.EXPORT)
    size = 0
    files = await ctx.orders.files(order, params.first, params.count)
    for number, file in enumerate(files, 1):
        size += await _accept(ctx, order, file)
        ctx.progress(number, len(files), message="checked")
        ctx.raise_if_cancelled()
    return AcceptFilesOutput(files=len(files), size=size)


async def _accept(ctx: HandlerContext[AcceptFilesParams], order: AssetOrder, file: dict[str, Any]) -> int:
    target = target_of(order, file)
    aside = arriving(order, ctx.job_id, target)
    if await ctx.storage.exists(aside):
        await _check(ctx, aside, file)
        async with ctx.orders.holding(order.asset_id, ctx.job_id, JobPurpose.EXPORT):
            await ctx.storage.move(aside, target)
    else:
        await _check(ctx, target, file)
    return int(file["size"])


async def _check(ctx: HandlerContext[AcceptFilesParams], name: ObjectName, file: dict[str, Any]) -> None:
    try:
        size = (await ctx.storage.stat(name)).size
    except NotFoundError:
        raise _wrong(f"Data Factory has not copied {file['path']}", "not_arrived") from None
    if size != file["size"]:
        raise _wrong(f"the copy of {file['path']} has {size} bytes, not {file['size']}", "hash_mismatch")
    digest = await sha256_of(ctx.storage, name)
    if digest != file["sha256"]:
        raise _wrong(f"the copy of {file['path']} has the SHA-256 {digest}, not {file['sha256']}", "hash_mismatch")


def _wrong(message: str, code: str) -> HandlerError:
    """The same again would not help: the export must copy again."""
    return HandlerError(message, code=code, retryable=False)
