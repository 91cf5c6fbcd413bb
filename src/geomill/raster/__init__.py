"""Pixels: reading rasters that nobody has vouched for, output grids, warping, COGs, mosaics, catalogue entries.

Most modules load rasterio, which takes a while, so handlers import them inside their functions: commands and the
gateway, which only want to know what handlers there are, stay fast. Light are those of which they need models or rules:
`facts`, `plan`, `grid`, `tiers`, `detection`, `outputs`, `intermediates`, `stac` and `catalogue`.
"""
