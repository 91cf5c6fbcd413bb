# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on assets: submit, follow, find, decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from httpx_sse import ServerSentEvent

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.assets import (
    AssetDetails,
    AssetPage,
    AssetStatus,
    JobWithoutAsset,
    LinksView,
    ReportPage,
    ReviewDecisionPage,
)
from geomill.contract.extracts import ExtractStatus, ExtractView
from geomill.contract.inspection import Inspection, InspectionOrder
from geomill.contract.submissions import DecisionMade, PlatformSubmission, SubmissionAccepted
from geomill.domain.states import ClearanceState
from geomill.errors import ConflictError, DownloadTooLarge, InputError, NotFoundError

ENDED = frozenset({"completed", "failed", "cancelled", "superseded"})
STATUS: Any = AssetStatus | JobWithoutAsset
FASTEST_SECONDS, SLOWEST_SECONDS = 0.1, 1.0
SLOWEST_EXTRACT_SECONDS = 5.0


class AssetOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def submit(
        self, submission: PlatformSubmission | Mapping[str, Any], *, dry_run: bool = False
    ) -> SubmissionAccepted:
        """Submit data that is in a container of bronze. With `dry_run` nothing is stored.

        A mapping is sent as it is; the gateway then checks all of it and names every wrong field.
        """
        return self._connection.post(SubmissionAccepted, "/api/platform/submit", submission, dry_run=dry_run or None)

    def inspect(self, order: InspectionOrder | Mapping[str, Any]) -> Inspection:
        """Look into a file that is in a container of bronze. Nothing is stored."""
        return self._connection.post(Inspection, "/api/platform/inspect", order)

    def status(self, identifier: str) -> AssetStatus:
        """Return the status of an asset. The identifier is the id of an asset, a request or a job."""
        status = self._connection.get(STATUS, path("/api/platform/status/{}", identifier))
        if isinstance(status, JobWithoutAsset):
            raise NotFoundError(f"there is no asset of '{identifier}'; {status.message}")
        asset_status: AssetStatus = status
        return asset_status

    def wait(self, identifier: str, *, on_progress: Callable[[AssetStatus], None] | None = None) -> AssetStatus:
        """Wait until the job of an asset has ended and return the status. `on_progress` is called after each look."""
        pause = FASTEST_SECONDS
        while True:
            status = self.status(identifier)
            if on_progress:
                on_progress(status)
            if status.status in ENDED:
                return status
            time.sleep(pause)
            pause = min(pause * 1.2, SLOWEST_SECONDS)

    def page(self, **filters: Any) -> AssetPage:
        """Return a page of assets, the newest first. `filters` are those of `GET /api/assets`."""
        return self._connection.get(AssetPage, "/api/assets", **filters)

    def get(self, asset_id: str) -> AssetDetails:
        """Return an asset with its revisions, requests, jobs and audit."""
        return self._connection.get(AssetDetails, path("/api/assets/{}", asset_id))

    def links(self, asset_id: str, *, seconds: int | None = None) -> LinksView:
        """Return the links to an asset. Those that need a credential are signed for `seconds`."""
        return self._connection.get(LinksView, path("/api/assets/{}/links", asset_id), seconds=seconds)

    def download(
        self,
        asset_id: str,
        target: Path,
        *,
        file_format: str | None = None,
        condition: str | None = None,
        bbox: str | None = None,
        on_extract: Callable[[ExtractView], None] | None = None,
    ) -> int:
        """Save the data of an asset as a file and return its size.

        Features come in `file_format` (gpkg by default), those that the CQL2 filter `condition` and `bbox` choose. A
        raster comes as its file, or cut by `bbox`. A file that is too large for an answer is ordered as an extract and
        waited for; `on_extract` is called after each look at it.
        """
        links = (self.links(asset_id)).links
        if "features" in links:
            place = path("/vector/collections/{}/download", asset_id)
            params = {"f": file_format or "gpkg", "filter": condition, "bbox": bbox}
            return self._save_or_order(place, target, params, on_extract)
        if file_format or condition:
            raise InputError("a raster is downloaded as it is, without format and filter", remedy="leave them out")
        if bbox:
            place = path("/raster/assets/{}/clip.tif", asset_id)
            return self._save_or_order(place, target, {"bbox": bbox}, on_extract)
        if "download" not in links:
            raise NotFoundError(f"the asset {asset_id} is not served as one file", remedy="download a part by its bbox")
        return self._connection.save(urlsplit(links["download"]).path, target)

    def order_features(
        self, asset_id: str, *, file_format: str = "gpkg", condition: str | None = None, bbox: str | None = None
    ) -> ExtractView:
        """Order features as an extract: a file that a job writes, of any size up to the limit of extracts."""
        place = path("/vector/collections/{}/download", asset_id)
        return self._connection.post(ExtractView, place, f=file_format, filter=condition, bbox=bbox)

    def order_clip(self, asset_id: str, bbox: str) -> ExtractView:
        """Order a part of a raster as an extract."""
        place = path("/raster/assets/{}/clip.tif", asset_id)
        return self._connection.post(ExtractView, place, bbox=bbox)

    def extract(self, extract: ExtractView) -> ExtractView:
        """Return an extract as it is now."""
        return self._connection.get(ExtractView, extract.href)

    def save_extract(
        self, extract: ExtractView, target: Path, *, on_extract: Callable[[ExtractView], None] | None = None
    ) -> int:
        """Wait until the file of an extract is ready, save it, and return its size."""
        pause = FASTEST_SECONDS
        while extract.status in (ExtractStatus.WAITING, ExtractStatus.RUNNING):
            time.sleep(pause)
            pause = min(pause * 1.2, SLOWEST_EXTRACT_SECONDS)
            extract = self.extract(extract)
            if on_extract:
                on_extract(extract)
        if extract.file_href is None:
            raise ConflictError(extract.error or "the extract has no file", remedy="order it again, or narrow it")
        return self._connection.save(extract.file_href, target)

    def _save_or_order(
        self,
        place: str,
        target: Path,
        params: Mapping[str, Any],
        on_extract: Callable[[ExtractView], None] | None,
    ) -> int:
        try:
            return self._connection.save(place, target, **params)
        except DownloadTooLarge:
            extract = self._connection.post(ExtractView, place, **params)
        if on_extract:
            on_extract(extract)
        return self.save_extract(extract, target, on_extract=on_extract)

    def report(self, name: str, *, seconds: float | None = None, limit: int | None = None) -> ReportPage:
        return self._connection.get(ReportPage, path("/api/assets/reports/{}", name), seconds=seconds, limit=limit)

    def decisions(
        self, *, since: datetime | None = None, limit: int | None = None, cursor: str | None = None
    ) -> ReviewDecisionPage:
        """List what reviewers decided about all assets, the newest first."""
        return self._connection.get(
            ReviewDecisionPage, "/api/assets/decisions", since=since and since.isoformat(), limit=limit, cursor=cursor
        )

    def follow_reviews(self) -> Iterator[ServerSentEvent]:
        """Iterate over the assets that wait for review, as they come and go. It does not end by itself."""
        return self._connection.follow("/api/assets/review/stream")

    def approve(self, identifier: str, clearance_level: ClearanceState | str, **options: Any) -> DecisionMade:
        """Approve a revision. `options` are those of the route, such as `expected_revision`."""
        return self._decide("approve", identifier, clearance_level=ClearanceState(clearance_level), **options)

    def reject(self, identifier: str, reason: str, **options: Any) -> DecisionMade:
        return self._decide("reject", identifier, reason=reason, **options)

    def revoke(self, identifier: str, reason: str, **options: Any) -> DecisionMade:
        return self._decide("revoke", identifier, reason=reason, **options)

    def unpublish(self, identifier: str, **options: Any) -> DecisionMade:
        """Take an asset out of service. Options: `delete_data`, `dry_run`, `reason`, `expected_revision`."""
        return self._decide("unpublish", identifier, **options)

    def rollback(self, identifier: str, revision: int, **options: Any) -> DecisionMade:
        return self._decide("rollback", identifier, revision=revision, **options)

    def retry_export(self, identifier: str, **options: Any) -> DecisionMade:
        return self._decide("export/retry", identifier, **options)

    def retry(self, identifier: str, **options: Any) -> SubmissionAccepted:
        """Run a failed request again. With `processing_options`, a new request for the same revision is run."""
        body = self._decision(identifier, options)
        return self._connection.post(SubmissionAccepted, "/api/platform/retry", body)

    def _decide(self, action: str, identifier: str, **fields: Any) -> DecisionMade:
        body = self._decision(identifier, fields)
        return self._connection.post(DecisionMade, f"/api/platform/{action}", body)

    def _decision(self, identifier: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a decision. The identifier is the id of an asset, a request or a job."""
        status = self.status(identifier)
        ids = {"asset_id": status.asset_id, "request_id": status.request_id, "job_id": status.job_id}
        field = next(name for name, value in ids.items() if value == identifier)
        return {field: identifier, **{name: value for name, value in fields.items() if value is not None}}
