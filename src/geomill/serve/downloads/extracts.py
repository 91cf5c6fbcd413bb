"""Orders of extracts, their documents and their files, for callers who see the asset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response

from geomill.api.access import admission
from geomill.contract.extracts import ExtractStatus, ExtractView
from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.access.visibility import Sight
from geomill.domain.assets.extract import file_of
from geomill.domain.assets.served import Served
from geomill.domain.states import JobStatus
from geomill.downloads.order import FeaturesOrder, PixelsOrder
from geomill.errors import ConflictError
from geomill.platform.extracts import ExtractFile, ExtractOffice
from geomill.serve.access import TheSight
from geomill.serve.directory import Directory
from geomill.serve.sending import StoredFile, send_file
from geomill.storage import Storage
from geomill.store.extracts import OrderedExtract
from geomill.store.pool import Pool

AssetName = Annotated[str, Path(max_length=256, description="Id of the asset; of a part or scene too")]
ExtractId = Annotated[str, Path(max_length=64)]
NOT_CACHED = {"Cache-Control": "private, no-store"}
FAILED = "the file could not be made"
STATUSES = {
    JobStatus.COMPLETED: ExtractStatus.READY,
    JobStatus.FAILED: ExtractStatus.FAILED,
    JobStatus.CANCELLED: ExtractStatus.FAILED,
    JobStatus.RUNNING: ExtractStatus.RUNNING,
}


@dataclass(frozen=True)
class Extracts:
    """The extracts of a zone. Rasters and vectors have the same routes, below the address of the asset."""

    directory: Directory
    storage: Storage
    pool: Pool
    office: ExtractOffice | None

    async def order(
        self, request: Request, served: Served, work: FeaturesOrder | PixelsOrder, name: str, media_type: str
    ) -> Response:
        """Order an extract and answer with its document."""
        if self.office is None:
            raise ConflictError("this server takes no orders", remedy="order the extract at a gateway")
        admitted = admission(request.scope)
        file = ExtractFile(name, media_type, work.model_dump(mode="json"))
        extract_id = await self.office.order(self.pool, served, file, admitted.principal if admitted else None)
        sight: Sight = request.state.sight
        view = self._view(request, await self.directory.extract(served.asset_id, extract_id, sight), sight)
        body = view.model_dump(mode="json")
        return JSONResponse(body, status_code=202, headers={**NOT_CACHED, "Location": view.href})

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["Downloads"])

        @routes.get("/extracts/{extract_id}", summary="Get an extract")
        async def get_extract(
            request: Request, sight: TheSight, name: AssetName, extract_id: ExtractId, response: Response
        ) -> ExtractView:
            """The state of an extract, and the path of its file when it is ready."""
            response.headers.update(NOT_CACHED)
            return self._view(request, await self._extract(name, extract_id, sight), sight)

        @routes.get("/extracts/{extract_id}/file", summary="Get the file of an extract", response_class=Response)
        @routes.head("/extracts/{extract_id}/file", include_in_schema=False)
        async def get_file(request: Request, sight: TheSight, name: AssetName, extract_id: ExtractId) -> Response:
            """The file, whole or a range of it."""
            ordered = await self._extract(name, extract_id, sight)
            if ordered.status is not JobStatus.COMPLETED or ordered.result is None:
                raise ConflictError("the file is not ready", remedy="follow the document of the extract")
            return await send_file(request, self.storage, _file(ordered, ordered.result))

        return routes

    async def _extract(self, name: str, extract_id: str, sight: Sight) -> OrderedExtract:
        return await self.directory.extract(name.partition(".")[0], extract_id, sight)

    def _view(self, request: Request, ordered: OrderedExtract, sight: Sight) -> ExtractView:
        extract, ready = ordered.extract, ordered.status is JobStatus.COMPLETED and ordered.result is not None
        asset = "/".join(request.url.path.split("/")[:4])  # such as /raster/assets/ID, whatever follows
        href = f"{asset}/extracts/{extract.extract_id}"
        ticket = request.query_params.get(PARAMETER)
        query = f"?{PARAMETER}={ticket}" if ticket else ""
        result = ordered.result if ready and ordered.result else {}
        status = STATUSES.get(ordered.status, ExtractStatus.WAITING) if ordered.status else ExtractStatus.WAITING
        return ExtractView(
            extract_id=extract.extract_id,
            asset_id=extract.asset_id,
            revision=extract.revision,
            status=status,
            file_name=extract.file_name,
            media_type=extract.media_type,
            created_at=extract.created_at,
            expires_at=extract.expires_at,
            href=href + query,
            file_href=f"{href}/file{query}" if ready else None,
            size=result.get("size"),
            sha256=result.get("sha256"),
            error=_error(ordered, sight) if status is ExtractStatus.FAILED else None,
        )


def _error(ordered: OrderedExtract, sight: Sight) -> str:
    """Return why there is no file. Only those to whom the asset belongs learn what went wrong inside."""
    return (ordered.error or FAILED) if sight.covers(ordered.platform_id) else FAILED


def _file(ordered: OrderedExtract, result: dict[str, Any]) -> StoredFile:
    extract = ordered.extract
    return StoredFile(
        name=file_of(result["path"]),
        size=result["size"],
        sha256=result["sha256"],
        media_type=extract.media_type,
        public=False,
        download_name=extract.file_name,
    )
