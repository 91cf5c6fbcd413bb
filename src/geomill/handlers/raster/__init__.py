"""Handlers that turn an untrusted raster file into COGs, a mosaic and a STAC item.

Each handler imports the code that works on pixels when it runs, not when it is imported: see `geomill.raster`.
"""
