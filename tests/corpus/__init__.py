"""Odd rasters and vectors, generated and not stored. Tests of many folders take them from here."""
