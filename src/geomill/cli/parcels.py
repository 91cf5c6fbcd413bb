"""Generates the demo's vector layer: fields on the invented island. Neighbouring polygons share their corners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geomill.cli.terrain import CRS, EAST, NORTH, PIXEL, land_of

USES = ((0.06, "beach"), (0.3, "meadow"), (0.55, "forest"), (0.8, "rock"), (9.0, "snow"))
"""The upper limit of the height of each land use."""
HIGHEST_METRES = 2_400
SPARE = 1.02
"""The share of land is measured on another grid than that of the fields, so a few more fields are laid out."""


def make_parcels(path: Path, count: int, pixels: int, seed: int) -> int:
    """Write a GeoPackage of fields on the island that `make_raster` draws from the same seed. Returns their number."""
    import numpy as np
    import shapely
    from pyogrio.raw import write

    height = land_of(seed, pixels)
    side = int(np.ceil(np.sqrt(count / (height > 0).mean()) * SPARE))
    corners = _corners(np.random.default_rng(seed), side, pixels * PIXEL)
    rows, columns, above = _on_land(height, side, count)
    ring = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]  # clockwise on the map, since rows go south: shapely turns it
    outline = np.stack([corners[rows + down, columns + across] for down, across in ring], axis=1)
    polygons = shapely.polygons(outline)
    use = np.array([name for _, name in USES], dtype=object)[np.searchsorted([top for top, _ in USES], above)]
    fields = {
        "parcel": np.array([f"F{number:06d}" for number in range(1, len(rows) + 1)], dtype=object),
        "land_use": use,
        "height_m": np.round(above * HIGHEST_METRES, 1),
        "area_ha": np.round(shapely.area(polygons) / 10_000, 3),
    }
    part = path.with_suffix(".part.gpkg")
    part.unlink(missing_ok=True)
    write(
        str(part),
        geometry=shapely.to_wkb(polygons),
        field_data=list(fields.values()),
        fields=list(fields),
        geometry_type="Polygon",
        crs=CRS,
        driver="GPKG",
        layer="parcels",
    )
    part.replace(path)
    return len(rows)


def _corners(random: Any, side: int, extent: float) -> Any:
    """Return the corners of a grid, each moved a little."""
    import numpy as np

    size = extent / side
    lines = np.arange(side + 1) * size
    moved = random.uniform(-0.3, 0.3, (2, side + 1, side + 1)) * size
    return np.stack([EAST + lines[None, :] + moved[0], NORTH - lines[:, None] + moved[1]], axis=-1)


def _on_land(height: Any, side: int, count: int) -> tuple[Any, Any, Any]:
    """Return the rows and columns of the fields above the sea, and their heights."""
    import numpy as np

    places = ((np.arange(side) + 0.5) / side * (len(height) - 2)).astype(int)
    above = height[np.ix_(places, places)]
    rows, columns = (indices[:count] for indices in np.nonzero(above > 0))
    return rows, columns, above[rows, columns]
