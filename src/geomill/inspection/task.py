"""The handler that looks into a file, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from geomill.contract.inspection import Inspection
from geomill.datasets.source import Source
from geomill.domain.assets.asset import DataType
from geomill.domain.sniff import HEADER_BYTES, ZARR_ROOTS, ZARR_STORE, kind_of
from geomill.inspection.findings import Findings
from geomill.sdk import HandlerContext, register_handler

NAME = "inspect_file"
TIMEOUT_SECONDS = 600


class InspectFileParams(BaseModel):
    source: Source
    folder: str
    """A folder for temporary files. Its maker deletes it."""
    data_type: DataType | None = None
    options: dict[str, Any] = {}
    copied_bytes: int
    """The maximum size of a source, or of the data in an archive, that is copied to this machine."""


@register_handler(NAME, timeout_seconds=TIMEOUT_SECONDS, params=InspectFileParams, output=Inspection, isolated=True)
def inspect_file(ctx: HandlerContext[InspectFileParams]) -> Inspection:
    """Looks into a file and reports its facts and problems."""
    params, findings = ctx.params, Findings()
    name = params.source.name
    size = ctx.storage.sync.stat(name).size
    data_type = params.data_type or guessed_type(ctx.storage.sync.read(name, 0, HEADER_BYTES), params.source.file_name)
    inspection = Inspection(
        file_name=params.source.file_name,
        container_name=params.source.container_name,
        size_bytes=size,
        data_type=data_type,
    )
    with findings.collecting():
        if data_type is DataType.RASTER:
            from geomill.inspection.rasters import RasterLook

            RasterLook(ctx.storage, params.source, params.options, inspection, findings).run()
        else:
            from geomill.inspection.vectors import VectorLook

            VectorLook(
                ctx.storage,
                params.source,
                params.options,
                Path(params.folder),
                params.copied_bytes,
                inspection,
                findings,
            ).run()
    return inspection.model_copy(update={"problems": findings.problems, "acceptable": not findings.has_error})


def guessed_type(header: bytes, file_name: str = "") -> DataType:
    """Return the type of the data by the first bytes of its file. A file that may hold both is taken for vectors."""
    kind = ZARR_STORE if file_name.rpartition("/")[2] in ZARR_ROOTS else kind_of(header)
    return DataType.RASTER if kind is not None and kind.data_types == ("raster",) else DataType.VECTOR
