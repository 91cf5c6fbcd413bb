"""The catalogue of published assets: entries built from assets and written to pgstac, and the external zone's database.

`entries.py` builds an entry, `writing.py` writes it, `following.py` says when; `bulk.py` handles many at once.
"""
