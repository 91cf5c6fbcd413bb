"""Looks into a raster: its header, and a sample of its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyproj
from pydantic import ValidationError
from rasterio.crs import CRS
from rasterio.io import DatasetReader

from geomill.contract.inspection import BandInside, CrsInside, Inspection, KnownFrom, RasterInside
from geomill.datasets.source import Source
from geomill.datasets.times import times
from geomill.handlers.raster.validate import ValidateParams
from geomill.inspection.findings import Findings
from geomill.raster.extent import bounds_4326
from geomill.raster.facts import RasterFacts, plain_nodata
from geomill.raster.inspection import inspect, nodata_of, short_crs
from geomill.raster.opening import uncompressed_bytes
from geomill.raster.placing import SourceOptions, placed_source
from geomill.raster.planning import AUTO, output_grid
from geomill.raster.tiers import Tier, check_tier
from geomill.sdk import Storage
from geomill.vector.projecting import KEEP, parsed

LONGEST_CODE = 40


@dataclass
class RasterLook:
    storage: Storage
    source: Source
    options: dict[str, Any]
    inspection: Inspection
    findings: Findings

    def run(self) -> None:
        findings, inspection = self.findings, self.inspection
        params = self._params()
        facts: RasterFacts | None = None
        options = SourceOptions.model_validate(
            params.model_dump(include=set(SourceOptions.model_fields)) if params else {}
        )
        with findings.collecting(), placed_source(self.storage, self.source.name, options) as placed:
            dataset = placed.dataset
            findings.warn("raster", placed.warnings)
            inspection.format = placed.driver or dataset.driver
            inspection.raster = _header(dataset)
            inspection.crs = inspection.raster.crs
            with findings.collecting():
                facts, warnings = inspect(dataset, self.source.name)
                findings.warn("raster", warnings)
            if facts is None and dataset.crs is not None:
                with findings.collecting():
                    inspection.extent = bounds_4326(dataset)
            self._check_target(dataset if facts is not None else None, params.output_tier if params else Tier.ANALYSIS)
        if facts is not None:
            self._add(facts)
        if params is not None:
            self._check(params, facts)

    def _params(self) -> ValidateParams | None:
        fields = {name: value for name, value in self.options.items() if name in ValidateParams.model_fields}
        place = {"container_name": self.source.container_name, "file_name": self.source.file_name}
        try:
            return ValidateParams.model_validate({**fields, **place})
        except ValidationError as error:
            self.findings.refuse_options(error)
            return None

    def _add(self, facts: RasterFacts) -> None:
        raster = self.inspection.raster
        assert raster is not None
        self.inspection.extent = facts.bounds_4326
        raster.raster_type = facts.raster_type.value
        raster.valid_fraction = facts.valid_fraction
        for band, band_facts in zip(raster.bands, facts.bands, strict=False):
            band.minimum, band.maximum = band_facts.minimum, band_facts.maximum

    def _check(self, params: ValidateParams, facts: RasterFacts | None) -> None:
        findings = self.findings
        if facts is not None:
            with findings.collecting():
                check_tier(params.output_tier, params.raster_type or facts.raster_type, facts.dtype)
        with findings.collecting():
            received = self.storage.sync.stat(self.source.name).modified.isoformat()
            acquired = facts.acquired if facts else None
            undated = times(params.datetime, params.start_datetime, params.end_datetime, acquired, received)[1]
            findings.warn("undated", undated, datetime=None)

    def _check_target(self, dataset: DatasetReader | None, tier: Tier) -> None:
        """Tell what the output's system and grid change, or why they do not fit. Without a dataset check only the
        option."""
        target = self.options.get("target_crs", AUTO)
        if not isinstance(target, str):
            return
        with self.findings.collecting():
            if target not in (AUTO, KEEP):
                parsed(target, "target_crs")
            if dataset is not None:
                self.findings.warn("resampled", output_grid(dataset, target, tier)[1])


def _header(dataset: DatasetReader) -> RasterInside:
    transform = dataset.transform
    placed = not transform.is_identity
    return RasterInside(
        width=dataset.width,
        height=dataset.height,
        pixel_size=(abs(transform.a) or abs(transform.b), abs(transform.e) or abs(transform.d)) if placed else None,
        crs=crs_inside(dataset.crs) if dataset.crs else None,
        bounds=tuple(dataset.bounds) if placed else None,
        nodata=plain_nodata(dataset.nodata),
        compression=dataset.compression.value if dataset.compression else None,
        overviews=dataset.overviews(1),
        uncompressed_bytes=uncompressed_bytes(dataset),
        bands=[
            BandInside(
                name=dataset.descriptions[index],
                type=dataset.dtypes[index],
                color=dataset.colorinterp[index].name,
                nodata=plain_nodata(nodata_of(dataset)),
                units=dataset.units[index] or None,
                scale=dataset.scales[index],
                offset=dataset.offsets[index],
            )
            for index in range(dataset.count)
        ],
    )


def crs_inside(crs: CRS) -> CrsInside:
    text = short_crs(crs)
    code = text if len(text) <= LONGEST_CODE and "[" not in text else None
    return CrsInside(code=code, name=pyproj.CRS.from_wkt(crs.to_wkt()).name, known_from=KnownFrom.FILE)
