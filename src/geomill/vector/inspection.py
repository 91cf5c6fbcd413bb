"""Inspects a layer before loading: reads its facts and checks that it can be loaded. A sample is repaired in the same
way as all features later, so that a wrong CRS is reported before a table is created."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Literal

import numpy as np
import pyarrow as pa
import pyproj
import shapely

from geomill.datasets.refusals import refused
from geomill.vector.attributes import postgres_type, storage_type
from geomill.vector.columns import column_names
from geomill.vector.facts import Family, LayerColumn, LayerFacts, LoadingRules, Mixed, Reading
from geomill.vector.geometry import GeometryRepairs
from geomill.vector.layers import Layer
from geomill.vector.loading import batch_rows
from geomill.vector.projecting import DEGREES, KEEP, named, parsed, srid_of
from geomill.vector.scanning import KINDS, kinds_of

MOST_COLUMNS = 1_598
"""A PostgreSQL table has at most 1,600 columns; geomill adds two."""
SAMPLE = 1_000
FEWEST_SAMPLED = 10
"""The smallest sample, for layers of large features."""


def inspect(
    layer: Layer, name: str, reading: Reading, mixed: Mixed, target_crs: str, *, keep_z: bool
) -> tuple[LayerFacts, LoadingRules, list[str]]:
    """Return the layer's facts, the rules for loading it, and warnings. Raises a refusal if it cannot be loaded."""
    if layer.rows == 0:
        raise refused("empty", f"'{name}' holds no features")
    columns, renamed = columns_of(layer.schema, name)
    crs = crs_of(layer, name, reading)
    target = crs if target_crs == KEEP else parsed(target_crs, "target_crs")
    family, points = kind_of(kinds_of(layer, name), name, mixed)
    facts = LayerFacts(
        format=layer.format,
        layer=layer.name,
        rows=layer.rows,
        crs=named(crs),
        columns=columns,
        text=layer.text,
    )
    rules = LoadingRules(
        target_crs=named(target),
        srid=srid_of(target, "target_crs"),
        family=family,
        points=points,
        keep_z=keep_z,
        mixed=mixed,
    )
    remarks = [remark.message for remark in layer.remarks]
    return facts, rules, [*remarks, *renamed, *sample_warnings(layer, facts, rules, crs, name, reading)]


def check_id_column(columns: Sequence[LayerColumn], id_column: str | None) -> None:
    if id_column is not None and not any(id_column in (column.source, column.name) for column in columns):
        names = ", ".join(column.source for column in columns)[:200]
        raise refused(
            "no_such_column",
            f"id_column: there is no column '{id_column}' in {names}",
            id_column=[column.source for column in columns],
        )


def columns_of(schema: pa.Schema, name: str) -> tuple[list[LayerColumn], list[str]]:
    if len(schema) > MOST_COLUMNS:
        raise refused(
            "too_many_columns",
            f"'{name}' has {len(schema):,} columns; a table has at most {MOST_COLUMNS:,}: remove some",
        )
    names = column_names(schema.names)
    columns = [
        LayerColumn(source=field.name, name=chosen, type=postgres_type(field.type))
        for field, chosen in zip(schema, names, strict=True)
    ]
    warnings = [
        f"the column '{column.source}' was renamed to '{column.name}'"
        for column in columns
        if column.source != column.name
    ]
    warnings += [
        f"the column '{column.name}' holds decimals and is stored as double precision"
        for column, field in zip(columns, schema, strict=True)
        if pa.types.is_decimal(storage_type(field.type))
    ]
    return columns, warnings


def crs_of(layer: Layer, name: str, reading: Reading) -> pyproj.CRS:
    if reading.source_crs:
        return parsed(reading.source_crs, "source_crs")
    if not layer.crs:
        raise refused(
            "no_crs", f"'{name}' does not declare its CRS: give source_crs, such as EPSG:32633", source_crs=None
        )
    return parsed(layer.crs, "the CRS of the file")


def kind_of(kinds: Counter[str], name: str, mixed: Mixed) -> tuple[Family, Literal["Point", "MultiPoint"]]:
    """Return the family with the most geometries, and the type that points are stored as."""
    families: Counter[Family] = Counter()
    for kind, count in kinds.items():
        families[KINDS[kind]] += count
    if len(families) > 1 and mixed is Mixed.REFUSE:
        shown = ", ".join(f"{count:,} of the kind {family}" for family, count in families.most_common())
        raise refused(
            "mixed_geometries",
            f"'{name}' holds {shown}: give mixed_geometries=split for a table of each kind",
            mixed_geometries=Mixed.SPLIT.value,
        )
    several = mixed is Mixed.SPLIT or "MultiPoint" in kinds
    return families.most_common(1)[0][0], "MultiPoint" if several else "Point"


def sample_warnings(
    layer: Layer, facts: LayerFacts, rules: LoadingRules, crs: pyproj.CRS, name: str, reading: Reading
) -> list[str]:
    """Repair a sample of the geometries, discard it, and return warnings."""
    size = min(SAMPLE, max(batch_rows(layer), FEWEST_SAMPLED))
    for batch in islice(layer.batches(layer.beginning(size), size, []), 1):
        GeometryRepairs(rules, facts.crs, fewest=1).harden(batch.geometry, batch.ids)
        bounds = shapely.total_bounds(shapely.from_wkb(batch.geometry.to_numpy(zero_copy_only=False), on_invalid="fix"))
        if not reading.source_crs:
            _check_units(bounds, crs, name)
        return _area_warnings(bounds, crs)
    return []


def _check_units(bounds: np.ndarray[tuple[int], np.dtype[np.float64]], crs: pyproj.CRS, name: str) -> None:
    """Refuse a projected layer whose coordinates all look like degrees."""
    if not crs.is_projected or not np.isfinite(bounds).all():
        return
    x, y = np.abs(bounds[[0, 2]]).max(), np.abs(bounds[[1, 3]]).max()
    if x <= DEGREES and y <= DEGREES / 4:
        raise refused(
            "wrong_crs",
            f"'{name}' declares coordinates in {crs.name}, but they look like degrees "
            f"({bounds[0]:.4f} {bounds[1]:.4f} to {bounds[2]:.4f} {bounds[3]:.4f}): give source_crs=EPSG:4326, "
            "or give the declared CRS as source_crs if it is right",
            source_crs="EPSG:4326",
        )


def _area_warnings(bounds: np.ndarray[tuple[int], np.dtype[np.float64]], crs: pyproj.CRS) -> list[str]:
    area = crs.area_of_use
    if area is None or not crs.is_projected or not np.isfinite(bounds).all() or area.west > area.east:
        return []
    west, south, east, north = pyproj.Transformer.from_crs(crs, 4326, always_xy=True).transform_bounds(*bounds)
    if not np.isfinite([west, south, east, north]).all():
        return []
    if west > area.east or east < area.west or south > area.north or north < area.south:
        return [f"the features lie outside the area of use of {crs.name}: check the CRS"]
    return []
