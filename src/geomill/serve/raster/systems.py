"""Checks the names of reference systems in requests for pixels before TiTiler passes them to GDAL."""

from __future__ import annotations

from fastapi import Request

from geomill.domain.crs import check_crs

_NAMES = ("crs", "coord_crs", "coord-crs", "dst_crs", "dst-crs", "bbox_crs", "bbox-crs", "bounds_crs", "shape_crs")


async def strict_systems(request: Request) -> None:
    """Check all names. As a dependency of whole routers it runs before TiTiler's own."""
    if b"crs" in request.scope["query_string"].lower():
        query = request.query_params
        for name in _NAMES:
            for value in query.getlist(name):
                check_crs(value, name)
