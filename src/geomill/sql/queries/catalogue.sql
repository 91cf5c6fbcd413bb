-- The catalogue: entries that follow their assets, items in bulk, and the external zone.

-- name: overdue
-- How many assets wait for their entry although an orchestrator should have written it.
SELECT count(*) AS count, min(noted_at) AS since, min(reason) AS reason
FROM catalogue.pending
WHERE attempts > 0 OR noted_at < now() - interval '10 seconds';

-- name: awaits_entry
SELECT EXISTS (SELECT FROM catalogue.pending WHERE asset_id = %(asset_id)s AND attempts = 0) AS awaits_entry;

-- name: due
-- The assets whose entries are due, with the size of their outputs.
SELECT p.asset_id, a.stac_collection_id AS collection_id, coalesce(pg_column_size(a.outputs), 0) AS size
FROM catalogue.pending AS p JOIN app.geospatial_assets AS a ON a.asset_id = p.asset_id
WHERE p.due_at <= now()
ORDER BY p.due_at
LIMIT %(limit)s;

-- name: try_collection
-- Locks the collection for this transaction, unless somebody else writes it.
SELECT pg_try_advisory_xact_lock(hashtextextended(%(collection_id)s, 11)) AS locked;

-- name: lock_pending
-- Locks the notes of these assets, except those of an asset that somebody changes right now. Who changes one of the others
-- waits from here on. The assets must be read afterwards, by another statement.
SELECT asset_id FROM catalogue.pending WHERE asset_id = ANY(%(asset_ids)s) FOR UPDATE SKIP LOCKED;

-- name: shown_assets
-- The assets, each with the revision that the catalogue shows: the public one, or else the newest that has completed. The
-- revision is null if the catalogue shows nothing of the asset.
SELECT a.asset_id, a.platform_id, a.data_type, a.stac_collection_id AS collection_id, a.stac_item_id AS item_id, s.revision,
       CASE WHEN s.revision = a.served_revision THEN a.outputs ELSE r.outputs END AS outputs,
       CASE WHEN s.revision = a.served_revision THEN a.table_name ELSE r.table_name END AS table_name,
       CASE WHEN s.revision = a.served_revision THEN a.blob_path ELSE r.blob_path END AS blob_path,
       a.public_revision IS NOT NULL AS public, a.approval_state AS approval, a.clearance_state AS clearance,
       app.revision_before(a.asset_id, s.revision) AS revision_before,
       coalesce(jsonb_typeof(a.outputs -> 'stac_items') = 'array', false) OR EXISTS (
           SELECT FROM app.asset_revisions AS e
           WHERE e.asset_id = a.asset_id AND jsonb_typeof(e.outputs -> 'stac_items') = 'array'
       ) AS has_series,
       (SELECT jsonb_build_object('default', max(t.name) FILTER (WHERE t.is_default), 'styles', jsonb_object_agg(t.name, t.style))
        FROM app.asset_styles AS t WHERE t.asset_id = a.asset_id) AS own_styles
FROM app.geospatial_assets AS a
CROSS JOIN LATERAL (
    SELECT CASE WHEN {served asset as a} THEN coalesce(a.public_revision, a.served_revision) END AS revision
) AS s
LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = s.revision
WHERE a.asset_id = ANY(%(asset_ids)s);

-- name: page_of_assets
-- The next assets of which the catalogue may show something, the oldest first.
SELECT a.asset_id, a.created_at
FROM app.geospatial_assets AS a
WHERE {served asset as a}
  AND (%(created_at)s::timestamptz IS NULL OR (a.created_at, a.asset_id) > (%(created_at)s::timestamptz, %(asset_id)s::text))
ORDER BY a.created_at, a.asset_id
LIMIT %(limit)s;

-- name: write_items
SELECT catalogue.write_items(
    %(collection_id)s, %(document)s::jsonb, %(platform_id)s, %(items)s::text[]::jsonb[], %(removed)s, %(series)s
) AS count;

-- name: note_change
-- The present entry stays visible until the new one is written.
INSERT INTO catalogue.pending AS p (asset_id, reason, withheld) VALUES (%(asset_id)s, %(reason)s, false)
ON CONFLICT (asset_id) DO UPDATE SET reason = EXCLUDED.reason, attempts = 0, due_at = now();

-- name: clear_pending
DELETE FROM catalogue.pending WHERE asset_id = ANY(%(asset_ids)s);

-- name: postpone
-- A refused entry is withheld, and tried less and less often.
INSERT INTO catalogue.pending AS p (asset_id, reason, attempts, due_at)
VALUES (%(asset_id)s, %(reason)s, 1, now() + interval '1 second')
ON CONFLICT (asset_id) DO UPDATE
SET attempts = p.attempts + 1, reason = EXCLUDED.reason, withheld = true,
    due_at = now() + make_interval(secs => greatest(least(2 ^ least(p.attempts, 20), 300), %(seconds)s));

-- name: limit_waits
-- For this transaction. A geometry that takes minutes to repair must not stop the entries of others.
SELECT set_config('lock_timeout', '250ms', true), set_config('statement_timeout', '30s', true);

-- name: incoming
CREATE TEMPORARY TABLE incoming (content jsonb NOT NULL, platform_id text) ON COMMIT DROP;

-- name: incoming_plain
-- Nothing is compressed on the way.
ALTER TABLE incoming ALTER COLUMN content SET STORAGE EXTERNAL;

-- name: copy_incoming
COPY incoming (content, platform_id) FROM STDIN;

-- name: put_incoming
SELECT catalogue.put_items(%(collections)s::jsonb) AS count;

-- name: hold_assets
-- No decision and no end of a job in between.
LOCK TABLE app.geospatial_assets IN EXCLUSIVE MODE;

-- name: drop_strays
-- Removes the items that are not among the incoming ones.
SELECT catalogue.write_items(s.collection, NULL, NULL, '{}', s.ids, '{}')
FROM (
    SELECT i.collection, array_agg(i.id) AS ids
    FROM pgstac.items AS i
    WHERE NOT EXISTS (
        SELECT FROM incoming AS n WHERE n.content ->> 'id' = i.id AND n.content ->> 'collection' = i.collection
    )
    GROUP BY i.collection
    ORDER BY i.collection
) AS s;

-- name: check
-- The items of the catalogue beside the incoming ones, which follow from the assets.
WITH expected AS (
    SELECT n.content ->> 'collection' AS collection, n.content ->> 'id' AS id, n.content FROM incoming AS n
), counted AS (
    SELECT i.collection, count(*) AS items, count(*) FILTER (WHERE i.private = '{"public": true}') AS public_items
    FROM pgstac.items AS i GROUP BY i.collection
)
SELECT count(e.id) AS expected,
       count(*) FILTER (WHERE i.id IS NULL) AS missing,
       count(*) FILTER (WHERE e.id IS NULL) AS strays,
       count(*) FILTER (WHERE i.content <> e.content - '{id,geometry,collection,type}'::text[]) AS different,
       (SELECT count(*) FROM catalogue.pending) AS pending,
       (SELECT count(*) FROM catalogue.collections AS o LEFT JOIN counted AS c ON c.collection = o.collection_id
        WHERE (o.items, o.public_items) <> (coalesce(c.items, 0), coalesce(c.public_items, 0))) AS miscounted
FROM expected AS e FULL JOIN pgstac.items AS i ON i.collection = e.collection AND i.id = e.id;

-- name: forget_pending
DELETE FROM catalogue.pending;

-- name: exported
-- The asset with the outputs of the revision that is exported: those of its row, or of its log if the revision was
-- superseded meanwhile.
SELECT a.asset_id, a.platform_id, a.data_type, a.stac_collection_id AS collection_id, a.stac_item_id AS item_id,
       CASE WHEN a.served_revision = %(revision)s THEN a.outputs ELSE r.outputs END AS outputs,
       CASE WHEN a.served_revision = %(revision)s THEN a.table_name ELSE r.table_name END AS table_name,
       CASE WHEN a.served_revision = %(revision)s THEN a.blob_path ELSE r.blob_path END AS blob_path,
       (SELECT jsonb_build_object('default', max(t.name) FILTER (WHERE t.is_default), 'styles', jsonb_object_agg(t.name, t.style))
        FROM app.asset_styles AS t WHERE t.asset_id = a.asset_id) AS own_styles
FROM app.geospatial_assets AS a
LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = %(revision)s
WHERE a.asset_id = %(asset_id)s;

-- name: hide_external
SELECT external.hide_asset(%(asset_id)s) AS hidden;

-- name: style_external
SELECT external.style_asset(%(asset_id)s, %(styles)s::jsonb, %(renders)s::jsonb, %(links)s::jsonb) AS styled;

-- name: put_external
INSERT INTO external.assets (asset_id, revision, platform_id, title, data_type, blob_path, table_name, outputs)
VALUES (%(asset_id)s, %(revision)s, %(platform_id)s, %(title)s, %(data_type)s, %(blob_path)s, %(table_name)s,
        %(outputs)s::jsonb)
ON CONFLICT (asset_id) DO UPDATE
SET revision = EXCLUDED.revision, platform_id = EXCLUDED.platform_id, title = EXCLUDED.title,
    data_type = EXCLUDED.data_type, blob_path = EXCLUDED.blob_path, table_name = EXCLUDED.table_name,
    outputs = EXCLUDED.outputs, exported_at = now();

-- name: columns
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required
FROM pg_attribute AS a
WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;

-- name: indexes
SELECT i.indisprimary AS is_primary, i.indisunique AS is_unique, m.amname AS method,
       array_agg(a.attname ORDER BY k.place) AS columns
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS m ON m.oid = c.relam
CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = to_regclass(%(table)s) AND i.indexprs IS NULL AND i.indpred IS NULL
GROUP BY i.indexrelid, i.indisprimary, i.indisunique, m.amname
ORDER BY i.indisprimary DESC, i.indexrelid;

-- name: schema_there
SELECT to_regnamespace('geo') IS NOT NULL AS there;

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS geo;

-- name: create_table
CREATE TABLE {table} ({columns});

-- name: drop_table
DROP TABLE IF EXISTS {table};

-- name: copy_out
COPY {table} ({columns}) TO STDOUT (FORMAT binary);

-- name: copy_in
COPY {table} ({columns}) FROM STDIN (FORMAT binary);

-- name: add_primary_key
ALTER TABLE {table} ADD PRIMARY KEY ({columns});

-- name: create_index
CREATE {unique} INDEX ON {table} USING {method} ({columns});

-- name: analyze
ANALYZE {table};
