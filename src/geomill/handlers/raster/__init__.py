"""Rasters, step by step: from a file that nobody has vouched for to COGs, a mosaic and a catalogue entry.

Each step loads the code that works on pixels when it runs, not when it is imported: see `geomill.raster`.
"""
