"""Tiles, pictures and values of rasters."""
