"""The steps that turn an untrusted file of features into a table of PostGIS and a catalogue entry.

Each handler imports the code that works on features when it runs, not when it is imported: see `geomill.vector`.
"""
