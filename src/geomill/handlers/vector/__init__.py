"""Features, step by step: from a file that nobody has vouched for to a table of PostGIS and a catalogue entry.

Each step loads the code that works on features when it runs, not when it is imported: see `geomill.vector`.
"""
