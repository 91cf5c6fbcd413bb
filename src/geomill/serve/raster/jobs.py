"""Rasters that stage jobs have made, before anybody publishes them: found by the job's id, in its result."""

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


class MadeRaster(BaseModel):
    """What the last stage of a job says about the raster that it has made."""

    blob_path: str
    tiling_scheme: str | None = None
    raster_type: str | None = None
    statistics: list[dict[str, Any]] = []
    bbox: list[float] | None = None


async def job_raster(directory: Directory, storage: Storage, job_id: str, sight: Sight) -> Served:
    """`NotFoundError` for whoever may not look at jobs, too."""
    result = await directory.job_result(job_id) if sight.everything and directory.zone is Zone.SILVER else None
    raster = await _made(storage, result) if result else None
    if raster is None:
        raise NotFoundError(f"there is no job '{job_id[:64]}' with a raster that you may see")
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


async def _made(storage: Storage, result: dict[str, Any]) -> MadeRaster | None:
    stages = {key: value for key, value in result.items() if key.startswith("stage_")}
    if not stages:
        return None
    last = stages[max(stages, key=lambda key: int(key.removeprefix("stage_")))]
    if isinstance(last, dict) and "large_metadata_path" in last:
        last = json.loads(await storage.read(ObjectName.parse(last["large_metadata_path"])))
    try:
        return MadeRaster.model_validate(last)
    except ValidationError:
        return None  # it has made something else
