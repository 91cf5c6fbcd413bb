"""The names of repairs and their descriptions for users."""

from __future__ import annotations

from collections.abc import Mapping

REPAIRS = {
    "geometry_null": "features have no geometry",
    "geometry_unreadable": "geometries could not be read and are NULL",
    "rings_closed": "geometries had open rings, which were closed",
    "geometry_empty": "geometries were empty and are NULL",
    "geometry_not_finite": "geometries had coordinates that are not finite numbers and are NULL",
    "height_dropped": "geometries had heights, which were dropped",
    "measure_dropped": "geometries had measures, which were dropped",
    "height_added": "geometries had no heights and got the height 0",
    "geometry_made_valid": "geometries were invalid and were made valid",
    "geometry_collapsed": "geometries collapsed when they were made valid and are NULL",
    "collection_unpacked": "geometry collections were unpacked",
    "geometry_outside_crs": "geometries could not be transformed and are NULL",
    "geometry_not_on_earth": "geometries had coordinates that are not on Earth and are NULL",
    "antimeridian_mended": "geometries crossed the 180th meridian or lay beyond it and were cut or moved",
    "rings_turned": "polygons had rings with the wrong winding, which were turned",
    "text_reencoded": "texts were not UTF-8 and were read as Windows-1252",
    "text_zero_bytes": "texts contained zero bytes, which were dropped",
    "number_not_finite": "numbers were not finite and are NULL",
    "number_too_large": "whole numbers were larger than 9,223,372,036,854,775,807 and are NULL: write them as text",
    "date_out_of_range": "dates were outside the years 1 to 9999 and are NULL",
}
"""The repairs, in the order of the warnings."""


def warnings(counts: Mapping[str, int]) -> list[str]:
    return [f"{counts[name]:,} {text}" for name, text in REPAIRS.items() if counts.get(name)]
