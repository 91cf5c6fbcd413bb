-- Tables of features: made in the schema geo_staging, which is not served, and moved to geo when they are complete.
-- Words in braces are identifiers, which the caller quotes.

-- Statements of a process that has died or hangs are ended soon after.
-- name: prepare_session
SET client_connection_check_interval = '2s';
SET idle_in_transaction_session_timeout = '2min';
SET tcp_user_timeout = '10s';
SET tcp_keepalives_idle = 4;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3

-- name: schemas_there
SELECT to_regnamespace('geo') IS NOT NULL AND to_regnamespace('geo_staging') IS NOT NULL AS there

-- name: make_schemas
CREATE SCHEMA IF NOT EXISTS geo;
CREATE SCHEMA IF NOT EXISTS geo_staging

-- name: known_srid
SELECT EXISTS (SELECT FROM spatial_ref_sys WHERE srid = %(srid)s) AS known

-- name: drop_table
DROP TABLE IF EXISTS {table}

-- name: make_staging
CREATE TABLE {table} ({columns}) WITH (autovacuum_enabled = false)

-- The ledger of the chunks in the staging tables. A chunk's line and its rows are written in one transaction. A last
-- line, with the number -1, describes the finished tables.
-- name: make_ledger
CREATE TABLE {ledger} (chunk integer PRIMARY KEY, outcome jsonb)

-- Waits for another process that loads the same chunk. Returns nothing if that process has loaded it.
-- name: enter_chunk
INSERT INTO {ledger} (chunk) VALUES (%(chunk)s) ON CONFLICT DO NOTHING RETURNING chunk

-- name: chunk_outcome
SELECT outcome FROM {ledger} WHERE chunk = %(chunk)s

-- name: note_chunk
UPDATE {ledger} SET outcome = %(outcome)s WHERE chunk = %(chunk)s

-- name: copy_rows
COPY {table} ({columns}) FROM STDIN (FORMAT binary)

-- name: prepare_to_finish
SET LOCAL maintenance_work_mem = '256MB'

-- name: lock_staging
LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE

-- name: outcomes
SELECT outcome FROM {ledger} WHERE chunk >= 0 ORDER BY chunk

-- name: rename
ALTER TABLE {table} RENAME TO {name}

-- name: move_to_geo
ALTER TABLE {table} SET SCHEMA geo

-- Another attempt may have made the index.
-- name: index_ids
CREATE UNIQUE INDEX IF NOT EXISTS {name} ON {table} ({column})

-- name: index_geometries
CREATE INDEX {name} ON {table} USING gist ({column})

-- name: rename_index
ALTER INDEX {index} RENAME TO {name}

-- name: add_key
ALTER TABLE {table} ADD PRIMARY KEY USING INDEX {index}

-- name: repeated_ids
SELECT count(*) - count(DISTINCT {column}) - count(*) FILTER (WHERE {column} IS NULL) AS repeated,
       count(*) FILTER (WHERE {column} IS NULL) AS missing
FROM {table}

-- name: index_unique
CREATE UNIQUE INDEX ON {table} ({column})

-- name: index_plain
CREATE INDEX ON {table} ({column})

-- name: settle_storage
ALTER TABLE {table} RESET (autovacuum_enabled)

-- name: comment_table
COMMENT ON TABLE {table} IS {text}

-- name: comment_column
COMMENT ON COLUMN {table}.{column} IS {text}

-- name: analyze
ANALYZE {table}

-- Ledgers of jobs that ended `seconds` ago or were deleted. The comment of a ledger is the id of its job.
-- name: abandoned
SELECT c.relname AS ledger
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = 'geo_staging'
LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = obj_description(c.oid, 'pg_class')
WHERE c.relkind = 'r' AND c.relname LIKE 'load\_%%\_chunks'
  AND (j.job_id IS NULL OR j.completed_at < now() - make_interval(secs => %(seconds)s))
ORDER BY 1

-- name: lock_timeout
SELECT set_config('lock_timeout', %(milliseconds)s || 'ms', true)

-- name: tables_named
SELECT c.relname AS name
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = %(schema)s
WHERE c.relkind = 'r' AND c.relname = ANY(%(names)s)
ORDER BY 1

-- name: all_rows
SELECT {columns}, ST_AsBinary({geometry}) AS {geometry} FROM {table} ORDER BY {id}

-- name: map_shape
ST_Transform(t.{geometry}, 3857)

-- name: map_shape_clipped
-- The map does not show the poles.
ST_Transform(
    ST_ClipByBox2D(ST_Transform(t.{geometry}, 4326), ST_MakeEnvelope(-180, -85.05, 180, 85.05, 4326)), 3857
)

-- name: tile
-- The features in a box of degrees as a vector tile, and whether there are any. At a small scale a tile may be empty
-- although its area has features.
WITH features AS MATERIALIZED (
    SELECT t.{id}{columns},
           ST_AsMVTGeom({shape}, ST_TileEnvelope(%(zoom)s, %(x)s, %(y)s), 4096, 64, true) AS {geometry}
    FROM {table} AS t
    WHERE t.{geometry} && ST_Transform(
        ST_Segmentize(ST_MakeEnvelope(%(west)s, %(south)s, %(east)s, %(north)s, 4326), 1), {srid}
    )
    LIMIT {most}
)
SELECT (SELECT ST_AsMVT(f, {layer}, 4096, 'geom', {id_name}) FROM features AS f WHERE f.{geometry} IS NOT NULL) AS tile,
       EXISTS (SELECT FROM features) AS inhabited
