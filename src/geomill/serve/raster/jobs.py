"""Unpublished rasters of stage jobs, found by job id in the job's result."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from geomill.domain.access.visibility import Sight
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.served import Served
from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import ApprovalState, ClearanceState
from geomill.errors import NotFoundError
from geomill.serve.directory import Directory
from geomill.storage import Storage


class JobRaster(BaseModel):
    """The raster that the last stage of a job has produced, as described in its result."""

    blob_path: str
    tiling_scheme: str | None = None
    raster_type: str | None = None
    statistics: list[dict[str, Any]] = []
    bbox: list[float] | None = None


async def job_raster(directory: Directory, storage: Storage, job_id: str, sight: Sight) -> Served:
    """Return the raster of a job. Raises `NotFoundError` also if the caller may not see jobs."""
    result = await directory.job_result(job_id) if sight.everything and directory.zone is Zone.SILVER else None
    raster = await _read(storage, result) if result else None
    if raster is None:
        raise NotFoundError(f"the job '{job_id[:64]}' has no raster, does not exist, or you may not see it")
    return Served(
        asset_id=job_id,
        platform_id="",
        title=job_id[:8],
        data_type=DataType.RASTER,
        revision=1,
        blob_path=raster.blob_path,
        scheme_path=raster.tiling_scheme,
        raster_type=raster.raster_type,
        statistics=raster.statistics,
        bbox=raster.bbox,
        approval_state=ApprovalState.PENDING_REVIEW,
        clearance_state=ClearanceState.UNCLEARED,
    )


async def _read(storage: Storage, result: dict[str, Any]) -> JobRaster | None:
    stages = {key: value for key, value in result.items() if key.startswith("stage_")}
    if not stages:
        return None
    last = stages[max(stages, key=lambda key: int(key.removeprefix("stage_")))]
    if isinstance(last, dict) and "large_metadata_path" in last:
        last = json.loads(await storage.read(ObjectName.parse(last["large_metadata_path"])))
    try:
        return JobRaster.model_validate(last)
    except ValidationError:
        return None  # the job's result is not a raster
