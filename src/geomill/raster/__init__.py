"""Raster processing: reading untrusted rasters, output grids, warping, COGs, mosaics, STAC items.

Most modules load rasterio, which is slow to import, so handlers import them inside their functions. Commands and the
gateway, which only list handlers, therefore stay fast. The modules with models and rules that they need are light:
`facts`, `plan`, `grid`, `rendering`, `tiers`, `detection` and `stac`.
"""
