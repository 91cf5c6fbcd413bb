"""Looks into a layer: does the checks of a job's validation one by one, so that each problem is found."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyproj
import shapely

from geomill.contract.inspection import Bounds, ColumnInside, CrsInside, KnownFrom, LayerInside
from geomill.handlers.vector.validate import ValidateVectorParams
from geomill.inspection.findings import Findings
from geomill.sdk import HandlerError
from geomill.vector.facts import Chunk, LayerColumn, LayerFacts, LoadingRules, Reading
from geomill.vector.inspection import check_id_column, columns_of, crs_of, kind_of, sample_warnings
from geomill.vector.layers import Layer
from geomill.vector.projecting import KEEP, PLATE_CARREE, named, parsed, srid_of
from geomill.vector.scanning import kinds_of

MOST_ROWS = 10_000
"""The features that are read of a layer."""
_LONGEST_CODE = 40


@dataclass
class LayerLook:
    layer: Layer
    name: str
    """The submitter's name of the file."""
    reading: Reading
    params: ValidateVectorParams
    entry: LayerInside
    findings: Findings

    def run(self) -> Bounds | None:
        """Check the layer and complete its entry. Returns its extent in degrees."""
        layer, findings = self.layer, self.findings
        if layer.rows == 0:
            findings.add("empty", f"'{self.name}' holds no features")
            return None
        chunk = layer.beginning(MOST_ROWS)
        self.entry.bounds = _bounds(layer, chunk)
        columns = self._columns()
        source = self._source_crs()
        target = None
        with findings.collecting():
            target = source if self.params.target_crs == KEEP else parsed(self.params.target_crs, "target_crs")
        with findings.collecting():
            self._check_features(chunk, columns, source, target)
        return _extent(self.entry.bounds, source) if source else None

    def _columns(self) -> list[LayerColumn]:
        columns: list[LayerColumn] = []
        with self.findings.collecting():
            columns, changes = columns_of(self.layer.schema, self.name)
            self.findings.warn("column_changed", changes)
            check_id_column(columns, self.params.id_column)
        return columns

    def _source_crs(self) -> pyproj.CRS | None:
        with self.findings.collecting():
            return crs_of(self.layer, self.name, self.reading)
        if _in_degrees(self.entry.bounds):
            self.findings.suggest("no_crs", "source_crs", PLATE_CARREE)
        return None

    def _check_features(
        self, chunk: Chunk, columns: list[LayerColumn], source: pyproj.CRS | None, target: pyproj.CRS | None
    ) -> None:
        layer, params = self.layer, self.params
        kinds = kinds_of(layer, self.name, chunk)
        self.entry.geometry_type = self.entry.geometry_type or ", ".join(sorted(kinds))
        family, points = kind_of(kinds, self.name, params.mixed_geometries)
        if source is None or target is None:
            return
        facts = LayerFacts(format=layer.format, layer=layer.name, rows=layer.rows, crs=named(source), columns=columns)
        rules = LoadingRules(
            target_crs=named(target),
            srid=srid_of(target, "target_crs"),
            family=family,
            points=points,
            keep_z=params.keep_z,
            mixed=params.mixed_geometries,
        )
        doubts = sample_warnings(layer, facts, rules, source, self.name, self.reading)
        self.findings.warn("outside_area", doubts, source_crs=None)


def described(layer: Layer, name: str, reading: Reading) -> LayerInside:
    """Return what a layer declares. Problems are left out."""
    entry = LayerInside(
        name=layer.name,
        geometry_type=None if layer.geometry_type == "Unknown" else layer.geometry_type,
        rows=layer.rows if layer.rows >= 0 else None,
    )
    with suppress(HandlerError):
        entry.columns = [
            ColumnInside(source=column.source, name=column.name, type=column.type)
            for column in columns_of(layer.schema, name)[0]
        ]
    with suppress(HandlerError):
        known_from = KnownFrom.OPTION if reading.source_crs else KnownFrom.FILE
        if not reading.source_crs and any(remark.code == "crs_assumed" for remark in layer.remarks):
            known_from = KnownFrom.DETECTED
        entry.crs = _crs_inside(crs_of(layer, name, reading), known_from)
    return entry


def _crs_inside(crs: pyproj.CRS, known_from: KnownFrom) -> CrsInside:
    text = named(crs)
    code = text if len(text) <= _LONGEST_CODE and "[" not in text else None
    return CrsInside(code=code, name=crs.name, known_from=known_from)


def _bounds(layer: Layer, chunk: Chunk) -> Bounds | None:
    """Return the bounds of the features in the chunk."""
    parts = [
        shapely.total_bounds(shapely.from_wkb(batch.geometry.to_numpy(zero_copy_only=False), on_invalid="ignore"))
        for batch in layer.batches(chunk, MOST_ROWS, [])
    ]
    usable = np.array([part for part in parts if np.isfinite(part).all()])
    if not len(usable):
        return None
    low, high = usable[:, :2].min(axis=0), usable[:, 2:].max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _in_degrees(bounds: Bounds | None) -> bool:
    return bounds is not None and max(-bounds[0], bounds[2]) <= 180 and max(-bounds[1], bounds[3]) <= 90


def _extent(bounds: Bounds | None, crs: pyproj.CRS) -> Bounds | None:
    if bounds is None:
        return None
    degrees = pyproj.Transformer.from_crs(crs, PLATE_CARREE, always_xy=True).transform_bounds(*bounds)
    west, south, east, north = (float(value) for value in degrees)
    return (west, south, east, north) if np.isfinite([west, south, east, north]).all() else None
