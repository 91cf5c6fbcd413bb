"""Routes of uploads: the tus protocol for the bytes, JSON for the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.requests import ClientDisconnect

from geomill.api import cursors, tus
from geomill.api.access import ThePrincipal
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.uploads import expiry, upload_view
from geomill.contract.uploads import UploadFilters, UploadFromUrl, UploadPage, UploadView
from geomill.domain.access.operator_audit import OperatorAction
from geomill.domain.access.principal import Principal, Role
from geomill.domain.assets.platform import PLATFORM_ID
from geomill.domain.assets.source_url import check_source_url, file_name_of
from geomill.domain.assets.upload import Upload, UploadStatus
from geomill.errors import Forbidden, InputError, Problem, UploadGone
from geomill.store import operator_audit, uploads
from geomill.uploads.opening import UploadOrder, open_upload, require_size
from geomill.uploads.receiving import UploadReceiver
from geomill.uploads.removing import remove_upload

router = APIRouter(prefix=tus.PREFIX, tags=["uploads"], responses=problem_responses(503))

UploadInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
_RECEIVED = {
    204: {"description": "The bytes are safe; `Upload-Offset` tells how many there are"},
    **problem_responses(404, 409, 410, 412, 413, 415, 423, 507),
}


@router.options("", status_code=204, summary="Tell what this server can do of the tus protocol")
async def describe_uploads(gateway: TheGateway) -> Response:
    return Response(status_code=204, headers=tus.capabilities(gateway.uploads.upload_max_bytes))


@router.post(
    "",
    status_code=201,
    summary="Begin an upload (tus)",
    response_class=Response,
    responses={
        201: {"description": "Send the bytes to the URL of `Location`"},
        **problem_responses(409, 412, 413, 507),
    },
)
async def begin_upload(gateway: TheGateway, principal: ThePrincipal, request: Request) -> Response:
    """`Upload-Length` is the number of bytes. `Upload-Metadata` has `filename`, and may have `folder`, `sha256`, and
    `platform_id` for operators. The body may already have the first bytes."""
    tus.require_version(request.headers)
    metadata = tus.metadata(request.headers)
    order = UploadOrder(
        platform_id=_platform(principal, metadata.get("platform_id")),
        file_name=metadata.get("filename", ""),
        created_by=principal.subject,
        length=tus.number(request.headers, "Upload-Length"),
        folder=metadata.get("folder"),
        sha256=metadata.get("sha256"),
        metadata=request.headers.get("upload-metadata", ""),
    )
    checksum = tus.checksum(request.headers)
    async with gateway.connection() as conn:
        upload = await open_upload(conn, gateway.desk.storage, gateway.uploads, order)
    if tus.carries_bytes(request.scope) or upload.length == 0:
        receiver = UploadReceiver(gateway.pool, gateway.desk.storage, upload, gateway.uploads.upload_max_bytes)
        upload = await receiver.receive(0, _body(request), checksum)
    location = f"{tus.PREFIX}/{upload.upload_id}"
    return Response(status_code=201, headers={"Location": location, **_headers(gateway, upload)})


@router.post(
    "/from-url", status_code=202, summary="Fetch a file from a URL that is allowed", responses=problem_responses(409)
)
async def upload_from_url(gateway: TheGateway, principal: ThePrincipal, order: UploadFromUrl) -> UploadView:
    """An orchestrator fetches the file. Ask for the upload until it is complete or has failed."""
    url = check_source_url(order.url, gateway.uploads.upload_from)
    upload_order = UploadOrder(
        platform_id=_platform(principal, order.platform_id),
        file_name=order.file_name or file_name_of(url),
        created_by=principal.subject,
        folder=order.folder,
        sha256=order.sha256,
        source_url=url,
    )
    async with gateway.connection() as conn:
        upload = await open_upload(conn, gateway.desk.storage, gateway.uploads, upload_order)
    return upload_view(upload, gateway.uploads.upload_expire_hours)


@router.get("", summary="List uploads, the newest first")
async def list_uploads(
    gateway: TheGateway, principal: ThePrincipal, filters: Annotated[UploadFilters, Query()]
) -> UploadPage:
    before = cursors.decode(filters.cursor) if filters.cursor else None
    platform_id = filters.platform_id if principal.has(Role.OPERATOR) else _platform(principal, filters.platform_id)
    async with gateway.connection() as conn:
        listed = await uploads.page(
            conn,
            platform_id=platform_id,
            status=filters.status,
            sha256=filters.sha256,
            file_name=filters.file_name,
            limit=filters.limit + 1,
            before=before,
        )
    page, more = listed[: filters.limit], len(listed) > filters.limit
    return UploadPage(
        uploads=[upload_view(upload, gateway.uploads.upload_expire_hours) for upload in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].upload_id) if more else None,
    )


@router.head("/{upload_id}", include_in_schema=False)
async def get_upload_offset(
    gateway: TheGateway, principal: ThePrincipal, upload_id: UploadInPath, request: Request
) -> Response:
    """Tells where to continue, as tus wants it: in the headers."""
    tus.require_version(request.headers)
    upload = await _own(gateway, principal, upload_id)
    if upload.status is UploadStatus.FAILED:
        raise UploadGone(f"the upload has failed: {upload.error}", remedy="begin a new upload")
    more = {"Upload-Metadata": upload.metadata} if upload.metadata else {}
    if upload.length is not None:
        more["Upload-Length"] = str(upload.length)
    return Response(headers={**_headers(gateway, upload), **more, "Cache-Control": "no-store"})


@router.get("/{upload_id}", summary="Get an upload", responses=problem_responses(404))
async def get_upload(gateway: TheGateway, principal: ThePrincipal, upload_id: UploadInPath) -> UploadView:
    return upload_view(await _own(gateway, principal, upload_id), gateway.uploads.upload_expire_hours)


@router.patch(
    "/{upload_id}", status_code=204, summary="Send bytes of an upload (tus)", response_class=Response,
    responses=_RECEIVED,
)  # fmt: skip
async def send_bytes(
    gateway: TheGateway, principal: ThePrincipal, upload_id: UploadInPath, request: Request
) -> Response:
    """The body continues at `Upload-Offset`. If it breaks off, ask for the offset with HEAD and send the rest. The
    answer to the last bytes comes when the file is whole, fits its checksum and lies in its container."""
    tus.require_version(request.headers)
    tus.require_bytes(request.headers)
    offset, checksum = tus.number(request.headers, "Upload-Offset"), tus.checksum(request.headers)
    upload = await _own(gateway, principal, upload_id)
    if upload.source_url is not None:
        raise Forbidden("this upload is fetched from a URL, so no bytes can be sent", remedy="begin another upload")
    if "content-length" in request.headers:
        require_size(gateway.uploads, offset + tus.number(request.headers, "Content-Length"))
    receiver = UploadReceiver(gateway.pool, gateway.desk.storage, upload, gateway.uploads.upload_max_bytes)
    upload = await receiver.receive(offset, _body(request), checksum)
    return Response(status_code=204, headers=_headers(gateway, upload))


@router.delete(
    "/{upload_id}", status_code=204, summary="Remove an upload and its file", responses=problem_responses(404, 409, 423)
)
async def remove(gateway: TheGateway, principal: ThePrincipal, upload_id: UploadInPath) -> Response:
    """Also removes a complete file from its container, unless a request that is under way names it."""
    upload = await _own(gateway, principal, upload_id)
    await remove_upload(gateway.pool, gateway.desk.storage, upload)
    if principal.platform_id != upload.platform_id:
        async with gateway.connection() as conn:
            await operator_audit.add(
                conn,
                OperatorAction.UPLOAD_REMOVED,
                upload_id,
                principal.subject,
                platform_id=upload.platform_id,
                file_name=upload.file_name,
            )
    return Response(status_code=204)


def _platform(principal: Principal, platform_id: str | None) -> str:
    """Return the platform that an upload is for. A submitter has one; an operator names one."""
    own = principal.platform_id
    if platform_id is None and own is None:
        message = "platform_id is missing: this credential belongs to no platform"
        raise InputError(message, problems=[Problem("platform_id", message, "name the platform of the file")])
    if platform_id is not None and not PLATFORM_ID.fullmatch(platform_id):
        message = f"platform_id {platform_id[:50]!r} is not the id of a platform"
        raise InputError(message, problems=[Problem("platform_id", message, "GET /api/platforms lists them")])
    if platform_id is not None and platform_id != own and not principal.has(Role.OPERATOR):
        raise Forbidden(f"this credential may upload only for the platform '{own}', not for '{platform_id}'")
    return platform_id or own or ""


async def _own(gateway: Gateway, principal: Principal, upload_id: str) -> Upload:
    """Return an upload. That of another platform does not exist, except for operators."""
    async with gateway.connection() as conn:
        upload = await uploads.get(conn, upload_id)
    if upload.platform_id != principal.platform_id and not principal.has(Role.OPERATOR):
        raise uploads.unknown(upload_id)
    return upload


async def _body(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as far as it comes."""
    request.scope["geomill.streaming"] = True  # `cli/connections.py` then asks for progress instead of an end
    try:
        async for data in request.stream():
            if data:
                yield data
    except ClientDisconnect:
        return


def _headers(gateway: Gateway, upload: Upload) -> Mapping[str, str]:
    headers = {"Upload-Offset": str(upload.received_bytes)}
    if expires := expiry(upload, gateway.uploads.upload_expire_hours):
        headers["Upload-Expires"] = tus.moment(expires)
    return headers
