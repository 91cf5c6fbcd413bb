"""Submissions: the workflow of each, the look into a file, and who copies public files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from geomill.domain.assets.factory import PIPELINE, PUBLIC_CLOUD, FactoryPlace, check_cloud, check_factory
from geomill.settings.concern import Concern


class PlatformSettings(Concern):
    """The workflows for data that is submitted without naming one, and who copies public files."""

    raster_workflow: Annotated[str, Field(description="Workflow for rasters if the submission names none")] = (
        "raster_processing"
    )
    vector_workflow: Annotated[str, Field(description="Workflow for vectors if the submission names none")] = (
        "vector_processing"
    )
    large_raster_workflow: Annotated[
        str, Field(description="Workflow for large rasters if the submission names none")
    ] = "process_large_raster"
    large_raster_mb: Annotated[
        int,
        Field(ge=0, description="Megabytes from which a raster file is large; 0: all go to the workflow for rasters"),
    ] = 1024
    exporter: Annotated[
        Literal["geomill", "data_factory"],
        Field(description="Who copies public files to the external zone: workers, or a pipeline of Azure Data Factory"),
    ] = "geomill"
    data_factory: Annotated[
        str | None, Field(description="Resource id of the factory: /subscriptions/…/factories/NAME; default: none")
    ] = None
    data_factory_pipeline: Annotated[
        str, Field(pattern=PIPELINE, description="Pipeline of the factory that copies the files")
    ] = "geomill-export"
    data_factory_url: Annotated[str, Field(description="URL of Azure's resource manager")] = PUBLIC_CLOUD

    @field_validator("data_factory")
    @classmethod
    def _resource(cls, value: str | None) -> str | None:
        return check_factory(value) if value else None

    @field_validator("data_factory_url")
    @classmethod
    def _cloud(cls, value: str) -> str:
        return check_cloud(value)

    @property
    def factory(self) -> FactoryPlace | None:
        if not self.data_factory:
            return None
        return FactoryPlace(factory=self.data_factory, pipeline=self.data_factory_pipeline, url=self.data_factory_url)


class InspectionSettings(Concern):
    """Limits of a look into a file before it is accepted."""

    inspect_seconds: Annotated[
        float, Field(gt=0, le=300, description="Seconds after which a look into a file is given up")
    ] = 20.0
    inspect_memory_mb: Annotated[
        int, Field(ge=256, description="Megabytes of memory of the process that looks into a file")
    ] = 1024
    inspect_copy_mb: Annotated[
        int, Field(ge=1, description="Megabytes up to which a file is fetched or unpacked to look into it")
    ] = 256
    inspect_processes: Annotated[
        int, Field(ge=1, le=100, description="Files that one gateway looks into at the same time")
    ] = 2
