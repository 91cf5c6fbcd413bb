"""Vector layers: opens untrusted files safely, repairs features in a fixed order, loads chunks into PostGIS, builds
STAC.

The libraries take a while to load, so handlers import this package when they run. Modules that handlers import at the
top hold only models, names and rules, and need no library. This is the only package besides the store that uses the
database: it writes tables of data, whose names and columns no model can know.
"""
