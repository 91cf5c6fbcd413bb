"""A backup of the whole platform, taken while it runs, and its restoration.

    manifest      the description of a backup; read as untrusted input
    packing       one file of a backup: compressed, counted and hashed on its way
    snapshot      a database as of one moment, table by table
    features      the shape of tables of features
    zones         the objects of all zones: listed with hashes, and copied
    problems      errors of the database, translated to ours
    creation      a backup from its beginning to its manifest, which is written last
    verification  the check that a backup is complete and unchanged
    loading       rows back into a database that this release's migration has made
    resumption    leases, jobs and schedules made ready for the engine
    restoration   objects, keys and databases, in that order

PostgreSQL's own tools are not used. A dump carries the definitions of functions, triggers and partitions, and those of
pgstac cannot be loaded again. Here the schema comes from the migration of the release that restores, and only rows come
from the backup, as text: so it can be loaded by any later release, into any server that geomill runs on.
"""
