"""Processes a large raster in four stages: tiling scheme, cutting if necessary, a COG per tile, mosaic and STAC item.

It uses the same steps as the workflow of the same name, but another layout of files:

    tiling_schemes/{folder}/{stem}_scheme.json            the grid
    {job8}/tiles/…                                        pieces of a source that was cut; intermediates
    cogs/{folder}/{stem}/{stem}_tile_{x}_{y}_cog.tif      the tiles
    mosaics/{job8}_mosaic.json, mosaics/{job8}/…          the mosaic, preview and thumbnail
    stac/{job8}_item.json                                 the STAC item

`{folder}` is the source's folder in its container, so that two files of one name do not share their outputs. It begins
with `_from/{container}` if that is not the default container.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from geomill.stages import JobExecutionContext, StageController, StageDefinition, StageTask, TaskResult, stage_job
from geomill.stages import WorkflowDefinition as Stages

MEGABYTE = 1024 * 1024
SOURCE_CONTAINER = "uploads"


class LargeRasterParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    blob_name: Annotated[str, Field(min_length=1, max_length=900, description="Path of the source in its container")]
    container_name: Annotated[
        str,
        Field(min_length=1, description=f"Container of the source, in the bronze zone; null means {SOURCE_CONTAINER}"),
        BeforeValidator(lambda value: SOURCE_CONTAINER if value is None else value),
    ] = SOURCE_CONTAINER
    tile_size: Annotated[int, Field(ge=512, le=8192, multiple_of=512)] | None = Field(
        default=None, description="Width and height of a tile in pixels; by default chosen by bands and depth"
    )
    overlap: Annotated[int, Field(ge=16, le=4096, description="Margin in pixels around pieces of a cut source")] = 512
    raster_type: Literal[
        "auto", "rgb", "rgba", "nir", "multispectral", "dem", "categorical", "index", "continuous", "single_band"
    ] = "auto"
    output_tier: Literal["visualization", "analysis", "archive"] = "analysis"
    jpeg_quality: Annotated[int, Field(ge=1, le=100, description="JPEG quality of the tier visualization")] = 85
    band_names: list[str] | None = Field(default=None, description="Names in the STAC item; the file's own by default")
    overview_level: Annotated[int, Field(ge=0, le=10)] = Field(
        default=2, description="Statistics of large tiles read every 2^n-th row and column; 0 reads all"
    )
    target_crs: str = "EPSG:4326"
    resampling: Literal["auto", "nearest", "bilinear", "cubic"] = "auto"
    datetime: str | None = Field(default=None, description="Time of acquisition")
    extract: Literal["auto", "always"] = Field(
        default="auto", description="Whether to cut the source first; auto cuts only if its windows cannot be read"
    )
    output_container: str = Field(default="cogs", description="Container in the silver zone")
    output_folder: Annotated[str, Field(pattern=r"^([^/\\]+(/[^/\\]+)*)?$", max_length=400)] = Field(
        default="", description="Parent folder of all outputs. Jobs for the same source overwrite each other's tiles"
    )


class LargeRasterWorkflow(Stages):
    job_type: str = "process_large_raster"
    description: str = "A raster of gigabytes into a mosaic of COGs, in four stages"
    stages: list[StageDefinition] = [  # noqa: RUF012  Pydantic copies it
        StageDefinition(
            stage_number=1,
            stage_name="generate_tiling_scheme",
            task_type="raster.stage_tiling_scheme",
            single=True,
            timeout_minutes=120,
        ),
        StageDefinition(
            stage_number=2, stage_name="extract_tiles", task_type="raster.extract_tiles", timeout_minutes=240
        ),
        StageDefinition(
            stage_number=3, stage_name="create_cogs", task_type="raster.process_tile_batch", timeout_minutes=60
        ),
        StageDefinition(
            stage_number=4,
            stage_name="create_mosaic_and_stac",
            task_type="raster.stage_mosaic",
            single=True,
            timeout_minutes=120,
        ),
    ]


class OutputPlaces:
    """Paths of a job's outputs."""

    def __init__(self, order: LargeRasterParameters, job_id: str) -> None:
        self._folder = f"{order.output_folder}/" if order.output_folder else ""
        folder, slash, file_name = order.blob_name.rpartition("/")
        container = "" if order.container_name == SOURCE_CONTAINER else f"_from/{order.container_name}/"
        self._source_folder = container + folder + slash
        self._stem = file_name.rpartition(".")[0] or file_name
        self._job_id = job_id

    @property
    def name(self) -> str:
        return f"{self._job_id[:8]}_mosaic"

    @property
    def scheme(self) -> str:
        return f"{self._folder}tiling_schemes/{self._source_folder}{self._stem}_scheme.json"

    @property
    def pieces(self) -> str:
        """Return the folder of the pieces. It contains the whole job id, so that jobs whose ids begin alike do not
        share it."""
        return f"{self._job_id[:8]}/tiles/{self._job_id[8:]}"

    @property
    def tile(self) -> str:
        return f"{self._folder}cogs/{self._source_folder}{self._stem}/{self._stem}_tile_{{x}}_{{y}}_cog.tif"

    @property
    def mosaic(self) -> str:
        return f"{self._folder}mosaics/{self.name}.json"

    @property
    def pictures(self) -> str:
        return f"{self._folder}mosaics/{self._job_id[:8]}"

    @property
    def item(self) -> str:
        return f"{self._folder}stac/{self._job_id[:8]}_item.json"


@stage_job("process_large_raster", workflow=LargeRasterWorkflow)
class LargeRasterController(StageController):
    Parameters = LargeRasterParameters

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        order: LargeRasterParameters = context.parameters
        places = OutputPlaces(order, context.job_id)
        match stage:
            case 1:
                return [_scheme(order, places)]
            case 2:
                return _pieces(order, places, context.previous_results[0].load())
            case 3:
                return list(_tiles(order, places, context))
            case _:
                return [_mosaic(order, places, context)]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        match stage:
            case 1:
                return _scheme_result(results[0].load())
            case 2:
                return _pieces_result([result.load() for result in results])
            case 3:
                return _tiles_result([result.load() for result in results])
            case _:
                return _mosaic_result(results[0].load())


def _scheme(order: LargeRasterParameters, places: OutputPlaces) -> StageTask:
    parameters = {
        "validation": {
            "container_name": order.container_name,
            "file_name": order.blob_name,
            "output_tier": order.output_tier,
            "raster_type": None if order.raster_type == "auto" else order.raster_type,
            "datetime": order.datetime,
        },
        "tiling": {
            "blob_prefix": "",
            "scheme_path": places.scheme,
            "target_crs": order.target_crs,
            "output_tier": order.output_tier,
            "resampling": order.resampling,
            "jpeg_quality": order.jpeg_quality,
            "tile_size": order.tile_size,
            "overlap": order.overlap,
            "overview_level": order.overview_level,
            "output_container": order.output_container,
        },
        "band_names": order.band_names,
    }
    return StageTask(parameters, "generate-tiling-scheme")


def _pieces(order: LargeRasterParameters, places: OutputPlaces, scheme: dict[str, Any]) -> list[StageTask]:
    """Return the task that cuts the source, or none if its windows can be read directly, as with most sources."""
    if order.extract == "auto" and scheme["tiling"]["strategy"] != "two_pass":
        return []
    parameters = {
        "source": scheme["validation"]["source"],
        "plan": scheme["tiling"]["plan"],
        "batches": scheme["tiling"]["batches"],
        "overlap": order.overlap,
        "folder": places.pieces,
    }
    return [StageTask(parameters, "extract-tiles")]


def _tiles(order: LargeRasterParameters, places: OutputPlaces, context: JobExecutionContext) -> list[StageTask]:
    scheme_plan = context.stage_results[1]["plan"]
    shared = {
        "source": scheme_plan["source"],
        "plan": scheme_plan["plan"],
        "blob_prefix": "",
        "tile_path": places.tile,
        "intermediates": places.pieces if context.stage_results[2]["tiles_extracted"] else None,
        "output_container": order.output_container,
    }
    return [StageTask({**shared, "tiles": [tile]}, f"cog-{tile['x']}_{tile['y']}") for tile in scheme_plan["tiles"]]


def _mosaic(order: LargeRasterParameters, places: OutputPlaces, context: JobExecutionContext) -> StageTask:
    scheme_plan = context.stage_results[1]["plan"]
    parameters = {
        "plan": scheme_plan["plan"],
        "results": [result.load() for result in context.previous_results],
        "source": scheme_plan["source"],
        "facts": scheme_plan["facts"],
        "times": scheme_plan["times"],
        "name": places.name,
        "stac_collection_id": "jobs",
        "mosaic_path": places.mosaic,
        "preview_folder": places.pictures,
        "item_path": places.item,
        "files": scheme_plan["files"],
        "output_container": order.output_container,
        "tile_server_url": f"/raster/jobs/{context.job_id}/tiles/WebMercatorQuad/{{z}}/{{x}}/{{y}}",
    }
    return StageTask(parameters, "create-mosaicjson")


def _scheme_result(scheme: dict[str, Any]) -> dict[str, Any]:
    validation, tiling = scheme["validation"], scheme["tiling"]
    facts, file = validation["facts"], tiling["files"][0]
    return {
        "tiling_scheme_blob": file["path"],
        "tiling_scheme_container": file["container"],
        "total_tiles": tiling["total_tiles"],
        "skipped_tiles": tiling["skipped_tiles"],
        "grid_dimensions": tiling["grid_dimensions"],
        "tile_size": tiling["tile_size"],
        "overlap": tiling["overlap"],
        "source_crs": facts["crs"],
        "target_crs": tiling["plan"]["grid"]["crs"],
        "raster_metadata": {
            "band_count": facts["count"],
            "data_type": facts["dtype"],
            "detected_type": validation["raster_type"],
        },
        "strategy": tiling["strategy"],
        "strategy_reason": tiling["strategy_reason"],
        "source_file_hash": validation["source_file_hash"],
        "warnings": [*validation["warnings"], *tiling["warnings"]],
        "plan": {
            "source": validation["source"],
            "facts": facts,
            "times": validation["times"],
            "plan": tiling["plan"],
            "tiles": [tile for batch in tiling["batches"] for tile in batch],
            "files": tiling["files"],
        },
    }


def _pieces_result(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "tiles_extracted": sum(result["total_tiles"] for result in results),
        "extraction_time_seconds": sum(result["extraction_time_seconds"] for result in results),
    }


def _tiles_result(results: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = [part["file"]["size"] for result in results for part in result["parts"]]
    total = sum(sizes) / MEGABYTE
    return {
        "cogs_created": len(sizes),
        "empty_tiles": sum(len(result["empty"]) for result in results),
        "total_size_mb": round(total, 3),
        "average_cog_size_mb": round(total / len(sizes), 3) if sizes else 0.0,
    }


def _mosaic_result(result: dict[str, Any]) -> dict[str, Any]:
    mosaic, preview, item = result["mosaic"], result["preview"], result["item"]
    return {
        "mosaic_blob": mosaic["files"][0]["path"],
        "stac_blob": item["path"],
        "tile_server_url": result["tile_server_url"],
        "tiling_scheme": result["tiling_scheme"],
        "raster_type": result["raster_type"],
        "total_cogs": mosaic["tile_count"],
        "empty_tiles": mosaic["empty_tiles"],
        "quadkey_count": mosaic["quadkey_count"],
        "blob_path": mosaic["blob_path"],
        "output_file_hash": mosaic["output_file_hash"],
        "bbox": preview["bbox"],
        "statistics": mosaic["statistics"],
        "files": [*mosaic["files"], *preview["files"], item],
    }
