-- Statements of backup and restoration. Words in braces are identifiers, which the caller quotes.

-- name: begin_snapshot
-- All following statements see the same snapshot. Rows are written in a format that does not depend on session settings.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SET LOCAL datestyle = 'ISO, YMD';
SET LOCAL intervalstyle = 'postgres';
SET LOCAL timezone = 'UTC';
SET LOCAL extra_float_digits = 1;
SET LOCAL bytea_output = 'hex';
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0

-- name: moment
SELECT now() AS now;

-- name: table_there
SELECT to_regclass(%(table)s) IS NOT NULL AS there;

-- name: table_size
SELECT coalesce(pg_table_size(to_regclass(%(table)s)), 0) AS bytes;

-- name: copy_out
COPY {table} ({columns}) TO STDOUT

-- name: copy_in
COPY {table} ({columns}) FROM STDIN

-- name: sequence_of
SELECT pg_get_serial_sequence(%(table)s, %(column)s) AS name;

-- name: sequence_value
SELECT CASE WHEN is_called THEN last_value END AS value FROM {sequence};

-- name: set_sequence
SELECT setval(pg_get_serial_sequence(%(table)s, %(column)s), %(value)s);

-- name: feature_tables
-- Tables of features, as of the snapshot. Unfinished ones come first, because their jobs are about to move them.
SELECT c.oid, n.nspname AS home, c.relname AS name, obj_description(c.oid, 'pg_class') AS comment,
       pg_table_size(c.oid) AS bytes
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('geo', 'geo_staging') AND c.relkind = 'r'
ORDER BY n.nspname DESC, c.relname;

-- name: feature_columns
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
       col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute AS a
WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum;

-- name: feature_indexes
-- Indexes on plain columns. Geomill makes no others.
SELECT c.relname AS name, m.amname AS method, i.indisunique AS "unique", i.indisprimary AS "primary",
       array_agg(a.attname::text ORDER BY k.place) AS columns
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS m ON m.oid = c.relam
CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = %(oid)s AND i.indisvalid AND i.indexprs IS NULL AND i.indpred IS NULL
GROUP BY i.indexrelid, c.relname, m.amname, i.indisunique, i.indisprimary
ORDER BY i.indisprimary DESC, c.relname;

-- name: name_now
-- The current name of the table, quoted: its job may have moved it since the snapshot. A cast to regclass uses the
-- current catalogue, not the snapshot. For a dropped table it gives the number of the table, without quotes.
SELECT n.name FROM (SELECT %(oid)s::oid::regclass::text AS name) AS n
WHERE n.name <> %(oid)s::oid::text;

-- name: hold_tables
LOCK TABLE {tables} IN ACCESS SHARE MODE;

-- name: collections_out
COPY (SELECT content, private FROM pgstac.collections) TO STDOUT

-- name: items_out
COPY (
    SELECT jsonb_build_object('type', 'Feature', 'id', id, 'collection', collection,
                              'geometry', ST_AsGeoJSON(geometry, 15)::jsonb) || content
    FROM pgstac.items
) TO STDOUT

-- name: referenced_objects
-- The files of assets, of their earlier revisions and of their exported copies, except for deleted ones.
SELECT DISTINCT f ->> 'zone' AS zone, f ->> 'container' AS container, f ->> 'path' AS path,
       (f ->> 'size')::bigint AS size, f ->> 'sha256' AS sha256
FROM (
    SELECT a.outputs -> 'files' AS files FROM app.geospatial_assets AS a
    WHERE a.served_revision > a.data_deleted_through
    UNION ALL
    SELECT r.outputs -> 'files' FROM app.asset_revisions AS r JOIN app.geospatial_assets AS a USING (asset_id)
    WHERE r.revision > a.data_deleted_through
    UNION ALL
    SELECT a.external_files FROM app.geospatial_assets AS a WHERE a.external_revision IS NOT NULL
) AS listed
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(files) = 'array' THEN files ELSE '[]' END) AS f
WHERE f ->> 'zone' IS NOT NULL AND f ->> 'container' IS NOT NULL AND f ->> 'path' IS NOT NULL;

-- name: source_containers
SELECT container_name AS name FROM app.platform_requests
UNION
SELECT jsonb_array_elements_text(containers) FROM app.platforms;

-- name: disable_triggers
ALTER TABLE {table} DISABLE TRIGGER USER;

-- name: enable_triggers
ALTER TABLE {table} ENABLE TRIGGER USER;

-- name: count_rows
SELECT count(*) AS count FROM {table};

-- name: delete_rows
DELETE FROM {table};

-- name: feature_table_there
SELECT n.nspname || '.' || c.relname AS name
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('geo', 'geo_staging') AND c.relkind IN ('r', 'p') LIMIT 1;

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS {schema};

-- name: create_table
CREATE TABLE {table} ({columns});

-- name: add_primary_key
ALTER TABLE {table} ADD CONSTRAINT {name} PRIMARY KEY ({columns});

-- name: create_index
CREATE {unique} INDEX {name} ON {table} USING {method} ({columns});

-- name: comment_table
COMMENT ON TABLE {table} IS {text};

-- name: comment_column
COMMENT ON COLUMN {table}.{column} IS {text};

-- name: analyze
ANALYZE {table};

-- name: open_collections
CREATE TEMPORARY TABLE restored_collections (content jsonb NOT NULL, private jsonb) ON COMMIT DROP;

-- name: collections_in
COPY restored_collections (content, private) FROM STDIN

-- name: put_collections
INSERT INTO pgstac.collections (content, private) SELECT content, private FROM restored_collections;

-- name: open_items
CREATE TEMPORARY TABLE restored_items (content jsonb NOT NULL) ON COMMIT DROP;

-- name: items_in
COPY restored_items (content) FROM STDIN

-- name: compare_items
-- Compares the catalogue that was rebuilt from the assets with the one of the backup.
SELECT count(n.content) AS saved, count(*) FILTER (WHERE i.id IS NULL) AS lacking,
       count(*) FILTER (WHERE n.content IS NULL) AS added,
       count(*) FILTER (WHERE i.content <> n.content - '{id,geometry,collection,type}'::text[]) AS different
FROM restored_items AS n
FULL JOIN pgstac.items AS i ON i.collection = n.content ->> 'collection' AND i.id = n.content ->> 'id';

-- name: open_incoming
CREATE TEMPORARY TABLE IF NOT EXISTS incoming (content jsonb NOT NULL, platform_id text) ON COMMIT DROP;

-- name: clear_incoming
DELETE FROM incoming;

-- name: incoming_items
-- Items of the backup that belong to no asset.
INSERT INTO incoming (content)
SELECT n.content FROM restored_items AS n
WHERE NOT EXISTS (SELECT FROM pgstac.items AS i
                  WHERE i.collection = n.content ->> 'collection' AND i.id = n.content ->> 'id');

-- name: collection_documents
SELECT coalesce(jsonb_object_agg(c.content ->> 'id', c.content), '{}')::text AS documents
FROM restored_collections AS c;

-- name: release_leases
-- The consumers that had these leases are gone. The next delivery has a greater token.
UPDATE dagapp.dag_queue
SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL
WHERE lease_token IS NOT NULL;

-- name: node_sources
-- The documents in which open jobs have stored the etags of their sources.
SELECT n.ctid::text AS place, n.output::text AS document
FROM dagapp.dag_node_states AS n JOIN dagapp.dag_jobs AS j USING (job_id)
WHERE j.completed_at IS NULL AND n.output::text LIKE '%%"etag"%%';

-- name: note_node_source
UPDATE dagapp.dag_node_states SET output = %(document)s::jsonb WHERE ctid = %(place)s::tid;

-- name: result_sources
SELECT r.ctid::text AS place, r.output::text AS document
FROM dagapp.dag_task_results AS r JOIN dagapp.dag_jobs AS j USING (job_id)
WHERE j.completed_at IS NULL AND r.output::text LIKE '%%"etag"%%';

-- name: note_result_source
UPDATE dagapp.dag_task_results SET output = %(document)s::jsonb WHERE ctid = %(place)s::tid;

-- name: message_sources
SELECT q.ctid::text AS place, q.body::text AS document FROM dagapp.dag_queue AS q
WHERE q.body::text LIKE '%%"etag"%%';

-- name: note_message_source
UPDATE dagapp.dag_queue SET body = %(document)s::jsonb WHERE ctid = %(place)s::tid;

-- name: open_jobs
SELECT job_id FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')
UNION
SELECT message_id FROM dagapp.dag_queue WHERE queue_name = %(job_queue)s
ORDER BY 1;

-- name: overdue_schedules
SELECT schedule_id FROM dagapp.dag_schedules WHERE NOT paused AND next_due_at <= now() ORDER BY 1 FOR UPDATE;

-- name: postpone_schedule
UPDATE dagapp.dag_schedules
SET next_due_at = %(next_due_at)s, held_until = NULL, updated_at = now()
WHERE schedule_id = %(schedule_id)s;
