"""Features: safe opening of what came from outside, repairs in a fixed order, chunks into PostGIS, STAC documents.

Its libraries take a while to load, so handlers import what they need when they run; only models, names and rules that
need no library are imported at the top. This package alone, below the store, speaks to the database: what it writes are
tables of data, whose names and columns no model can know.
"""
