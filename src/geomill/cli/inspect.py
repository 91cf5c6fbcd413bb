"""`geomill inspect`: looks into a file on this machine, or in a container of bronze through the gateway."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from geomill.cli import context
from geomill.cli.client import gateway
from geomill.cli.options import ChosenWorkflow, PlatformOption, ProcessingOptions, json_pairs
from geomill.cli.printing import Json, print_json
from geomill.contract.inspection import (
    Inspection,
    InspectionProblem,
    KnownFrom,
    LayerInside,
    OptionRemedy,
    RasterInside,
    Severity,
)
from geomill.domain.assets.asset import DataType
from geomill.domain.objectname import ObjectName, Zone, is_container
from geomill.errors import InputError
from geomill.settings import PlatformSettings

MEGABYTE = 1024 * 1024
MOST_COLUMNS = 30
_ORIGINS = {
    KnownFrom.FILE: "as the file says",
    KnownFrom.FORMAT: "as for all files of this format",
    KnownFrom.OPTION: "as the option says",
    KnownFrom.DETECTED: "as its content shows",
}


def inspect(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A local file, or with --container a path in bronze.")],
    container: Annotated[
        str | None, typer.Option("--container", help="Container in bronze that holds FILE; asks the gateway.")
    ] = None,
    data_type: Annotated[
        DataType | None, typer.Option("--data-type", help="raster or vector. Default: as the content shows.")
    ] = None,
    platform: PlatformOption = "ddh",
    workflow_id: ChosenWorkflow = None,
    options: ProcessingOptions = None,
    as_json: Json = False,
) -> None:
    """Show what is in a file and all problems. The exit code is 1 if a job would fail."""
    values = json_pairs(options or [], "--option")
    if container:
        order = {
            "platform_id": platform,
            "container_name": container,
            "file_name": file,
            "data_type": data_type,
            "workflow_id": workflow_id,
            "processing_options": values,
        }
        with gateway() as client:
            inspection = client.assets.inspect(order)
    else:
        inspection = _local(Path(file), data_type, workflow_id, values)
    if as_json:
        print_json(inspection)
    else:
        print_inspection(inspection)
    raise typer.Exit(0 if inspection.acceptable else 1)


def _local(file: Path, data_type: DataType | None, workflow_id: str | None, options: dict[str, Any]) -> Inspection:
    """Look into a local file in the same way as a gateway does."""
    import asyncio

    from geomill.platform.inspecting import with_workflow
    from geomill.platform.inspector import Inspector
    from geomill.storage import Storage, StorageRecipe

    if not file.is_file():
        raise InputError(f"there is no file {file}", remedy="give the path of a file, or --container for one in bronze")
    settings = context.settings()

    async def look(name: ObjectName, recipe: StorageRecipe) -> Inspection:
        inspector = Inspector(Storage(recipe), settings.inspection)
        async with inspector.running():
            return await inspector.inspect("", name, data_type, options)

    root, name = _object_name(file.resolve())
    with tempfile.TemporaryDirectory(prefix="geomill-inspect-") as folder:
        inspection = asyncio.run(look(name, StorageRecipe(zones={name.zone: str(root)}, data=folder)))
    inspection = inspection.model_copy(update={"container_name": None, "file_name": str(file)})
    if workflow_id is None and inspection.data_type is None:
        return inspection
    workflows = context.workflow_registry(context.handlers())
    chosen = workflow_id or _default_workflow(settings.platform, inspection)
    return with_workflow(inspection, workflows.get(chosen), options)


def _default_workflow(settings: PlatformSettings, inspection: Inspection) -> str:
    if inspection.data_type is not DataType.RASTER:
        return settings.vector_workflow
    large = settings.large_raster_mb and inspection.size_bytes >= settings.large_raster_mb * MEGABYTE
    return settings.large_raster_workflow if large else settings.raster_workflow


def _object_name(file: Path) -> tuple[Path, ObjectName]:
    """Return a folder that can be a zone, and the name of the file in it, because only objects of zones are read."""
    for folder in file.parents:
        if is_container(folder.name):
            return folder.parent, ObjectName(Zone.BRONZE, folder.name, str(file.relative_to(folder)))
    raise InputError(f"the file {file} cannot be read from its folder", remedy="copy it to a folder such as /tmp")


def print_inspection(inspection: Inspection) -> None:
    """Print an inspection. Names in a file may hold characters that control a terminal, which are replaced."""
    for line in _lines(inspection):
        typer.echo("".join(character if character.isprintable() else "�" for character in line))


def _lines(inspection: Inspection) -> list[str]:
    lines = [f"{inspection.file_name}  {inspection.format or 'unknown format'}, {inspection.size_bytes:,} bytes"]
    if inspection.crs:
        crs = inspection.crs
        lines.append(f"  crs {crs.code or crs.name} ({crs.name}), {_ORIGINS[crs.known_from]}")
    if inspection.encoding:
        lines.append(f"  encoding {inspection.encoding.name}, {_ORIGINS[inspection.encoding.known_from]}")
    if inspection.extent:
        lines.append("  extent " + ", ".join(f"{value:.6f}" for value in inspection.extent))
    for layer in inspection.layers:
        lines += _layer(layer)
    if inspection.raster:
        lines += _raster(inspection.raster)
    if inspection.workflow_id:
        lines.append(f"  workflow {inspection.workflow_id}")
    if not inspection.complete:
        lines.append("  not all of the file was read")
    for severity in Severity:
        lines += [line for problem in inspection.problems if problem.severity is severity for line in _problem(problem)]
    return lines


def _layer(layer: LayerInside) -> list[str]:
    rows = "an unknown number of" if layer.rows is None else f"{layer.rows:,}"
    name = f" {layer.name}" if layer.name else ""
    lines = [f"  layer{name}: {rows} features, {layer.geometry_type or 'unknown geometries'}"]
    lines += [f"    {column.source}  {column.type}" for column in layer.columns[:MOST_COLUMNS]]
    if len(layer.columns) > MOST_COLUMNS:
        lines.append(f"    and {len(layer.columns) - MOST_COLUMNS} more columns")
    return lines


def _raster(raster: RasterInside) -> list[str]:
    kind = f", {raster.raster_type}" if raster.raster_type else ""
    lines = [f"  raster: {raster.width:,} by {raster.height:,} pixels{kind}"]
    for number, band in enumerate(raster.bands[:MOST_COLUMNS], 1):
        span = "" if band.minimum is None else f", {band.minimum:g} to {band.maximum:g}"
        nodata = "" if band.nodata is None else f", nodata {band.nodata}"
        lines.append(f"    band {number} {band.name or band.color}  {band.type}{span}{nodata}")
    return lines


def _problem(problem: InspectionProblem) -> list[str]:
    lines = [f"{problem.severity.value}: {problem.message}"]
    return [*lines, *(f"  --option {_remedy(remedy)}" for remedy in problem.remedies)]


def _remedy(remedy: OptionRemedy) -> str:
    if remedy.value is not None:
        return f"{remedy.option}={remedy.value}"
    return f"{remedy.option}=…" + (f"  one of {', '.join(remedy.choices)}" if remedy.choices else "")
