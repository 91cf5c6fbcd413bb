"""The first look at a layer: what it is, and whether it can be loaded at all. A sample of it is repaired, as all of it
will be, so that a wrong CRS is told before a table is made."""

from __future__ import annotations

from collections import Counter
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
"""PostgreSQL has 1,600 for a table; two are ours."""
SAMPLE = 1_000
FEWEST_SAMPLED = 10
"""Of large features."""


def inspect(
    layer: Layer, name: str, reading: Reading, mixed: Mixed, target_crs: str, *, keep_z: bool
) -> tuple[LayerFacts, LoadingRules, list[str]]:
    """Facts, the rules that follow from them, and warnings. Raises what refuses it."""
    if layer.rows == 0:
        raise refused("empty", f"'{name}' holds no features")
    columns, renamed = _columns(layer.schema, name)
    crs = _crs(layer, name, reading)
    target = crs if target_crs == KEEP else parsed(target_crs, "target_crs")
    family, points = _kind(kinds_of(layer, name), name, mixed)
    facts = LayerFacts(
        format=layer.format,
        layer=layer.name,
        rows=layer.rows,
        crs=named(crs),
        columns=columns,
    )
    rules = LoadingRules(
        target_crs=named(target),
        srid=srid_of(target, "target_crs"),
        family=family,
        points=points,
        keep_z=keep_z,
        mixed=mixed,
    )
    return facts, rules, [*renamed, *_try(layer, facts, rules, crs, name, reading)]


def check_id_column(facts: LayerFacts, wanted: str | None) -> None:
    if wanted is not None and not any(wanted in (one.source, one.name) for one in facts.columns):
        names = ", ".join(one.source for one in facts.columns)[:200]
        raise refused("no_such_column", f"id_column: there is no column '{wanted}' in {names}")


def _columns(schema: pa.Schema, name: str) -> tuple[list[LayerColumn], list[str]]:
    if len(schema) > MOST_COLUMNS:
        raise refused(
            "too_many_columns",
            f"'{name}' has {len(schema):,} columns; a table has room for {MOST_COLUMNS:,}: leave some out",
        )
    names = column_names(schema.names)
    made = [
        LayerColumn(source=field.name, name=chosen, type=postgres_type(field.type))
        for field, chosen in zip(schema, names, strict=True)
    ]
    warnings = [f"the column '{one.source}' is called '{one.name}'" for one in made if one.source != one.name]
    warnings += [
        f"the column '{one.name}' holds decimals, and is stored as double precision"
        for one, field in zip(made, schema, strict=True)
        if pa.types.is_decimal(storage_type(field.type))
    ]
    return made, warnings


def _crs(layer: Layer, name: str, reading: Reading) -> pyproj.CRS:
    if reading.source_crs:
        return parsed(reading.source_crs, "source_crs")
    if not layer.crs:
        raise refused("no_crs", f"'{name}' does not say in which CRS it is: give source_crs, such as EPSG:32633")
    return parsed(layer.crs, "the CRS of the file")


def _kind(kinds: Counter[str], name: str, mixed: Mixed) -> tuple[Family, Literal["Point", "MultiPoint"]]:
    """The family with the most geometries, and as what points are stored."""
    families: Counter[Family] = Counter()
    for kind, count in kinds.items():
        families[KINDS[kind]] += count
    if len(families) > 1 and mixed is Mixed.REFUSE:
        shown = ", ".join(f"{count:,} of the kind {family}" for family, count in families.most_common())
        raise refused(
            "mixed_geometries", f"'{name}' holds {shown}: give mixed_geometries=split for a table of each kind"
        )
    several = mixed is Mixed.SPLIT or "MultiPoint" in kinds
    return families.most_common(1)[0][0], "MultiPoint" if several else "Point"


def _try(
    layer: Layer, facts: LayerFacts, rules: LoadingRules, crs: pyproj.CRS, name: str, reading: Reading
) -> list[str]:
    """A sample of the geometries, repaired and thrown away."""
    size = min(SAMPLE, max(batch_rows(layer), FEWEST_SAMPLED))
    for batch in islice(layer.batches(layer.beginning(size), size, []), 1):
        GeometryRepairs(rules, facts.crs, fewest=1).harden(batch.geometry, batch.ids)
        found = shapely.total_bounds(shapely.from_wkb(batch.geometry.to_numpy(zero_copy_only=False), on_invalid="fix"))
        if not reading.source_crs:
            _check_units(found, crs, name)
        return _outside(found, crs)
    return []


def _check_units(bounds: np.ndarray[tuple[int], np.dtype[np.float64]], crs: pyproj.CRS, name: str) -> None:
    """Metres that all look like degrees are degrees."""
    if not crs.is_projected or not np.isfinite(bounds).all():
        return
    x, y = np.abs(bounds[[0, 2]]).max(), np.abs(bounds[[1, 3]]).max()
    if x <= DEGREES and y <= DEGREES / 4:
        raise refused(
            "wrong_crs",
            f"'{name}' says that its coordinates are in {crs.name}, but they look like degrees "
            f"({bounds[0]:.4f} {bounds[1]:.4f} to {bounds[2]:.4f} {bounds[3]:.4f}): give source_crs=EPSG:4326, "
            "or the CRS that it says if that is right",
        )


def _outside(bounds: np.ndarray[tuple[int], np.dtype[np.float64]], crs: pyproj.CRS) -> list[str]:
    area = crs.area_of_use
    if area is None or not crs.is_projected or not np.isfinite(bounds).all() or area.west > area.east:
        return []
    west, south, east, north = pyproj.Transformer.from_crs(crs, 4326, always_xy=True).transform_bounds(*bounds)
    if not np.isfinite([west, south, east, north]).all():
        return []
    if west > area.east or east < area.west or south > area.north or north < area.south:
        return [f"the features lie outside of the area that {crs.name} is made for: is the CRS right?"]
    return []
