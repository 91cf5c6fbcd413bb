"""A backup of the whole platform, taken while it runs, and its restoration.

    manifest      what a backup says of itself; read as untrusted input
    packing       one file of a backup: compressed, counted and hashed on its way
    snapshot      a database as of one moment, table by table
    features      the shape of tables of features
    zones         the objects of all zones: listed with hashes, and copied
    problems      errors of the database, in our words
    creation      a backup from its beginning to its manifest, which is written last
    verification  whether a backup is whole and unchanged
    loading       rows back into a database that this release's migration has made
    resumption    what the engine finds afterwards: leases, jobs, schedules
    restoration   objects, keys and databases, in that order

PostgreSQL's own tools are not used. A dump carries the definitions of functions, triggers and partitions, and those of
pgstac cannot be loaded again. Here the schema comes from the migration of the release that restores, and only rows come
from the backup, as text: so it can be loaded by any later release, into any server that geomill runs on.
"""
