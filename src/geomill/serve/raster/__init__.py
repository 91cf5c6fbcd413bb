"""Tiles, images and values of rasters."""
