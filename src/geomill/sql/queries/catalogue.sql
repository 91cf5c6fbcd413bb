-- The catalogue. What one asset needs is done by functions that follow it; here are those that write many.

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
-- No decision and no verdict in between.
LOCK TABLE app.geospatial_assets IN EXCLUSIVE MODE;

-- name: incoming_assets
INSERT INTO incoming (content, platform_id)
SELECT item, a.platform_id
FROM app.geospatial_assets AS a CROSS JOIN LATERAL app.catalogue_items(a.asset_id) AS item
WHERE a.deleted_at IS NULL AND a.served_revision > a.data_deleted_through;

-- name: drop_strays
SELECT catalogue.remove_item(i.collection, i.id)
FROM pgstac.items AS i
WHERE NOT EXISTS (
    SELECT FROM incoming AS n WHERE n.content ->> 'id' = i.id AND n.content ->> 'collection' = i.collection
)
ORDER BY i.collection, i.id;

-- name: put_assets
SELECT catalogue.put_items(coalesce(jsonb_object_agg(c.id, c.document), '{}')) AS count
FROM (
    SELECT DISTINCT ON (a.stac_collection_id) a.stac_collection_id AS id,
           jsonb_build_object('stac_version', '1.1.0', 'license', 'other',
                              'description', format('Assets of %%s', a.stac_collection_id))
               || CASE WHEN jsonb_typeof(s.outputs -> 'stac_collection') = 'object'
                       THEN s.outputs -> 'stac_collection' ELSE '{}' END AS document
    FROM app.geospatial_assets AS a CROSS JOIN LATERAL app.shown_revision(a.asset_id) AS s
    WHERE jsonb_typeof(s.outputs -> 'stac_item') = 'object'
    ORDER BY a.stac_collection_id, a.created_at
) AS c;

-- name: check
-- What the catalogue has beside what follows from the assets.
WITH wanted AS (
    SELECT a.stac_collection_id AS collection, item ->> 'id' AS id, item
    FROM app.geospatial_assets AS a CROSS JOIN LATERAL app.catalogue_items(a.asset_id) AS item
    WHERE a.deleted_at IS NULL AND a.served_revision > a.data_deleted_through
), counted AS (
    SELECT i.collection, count(*) AS items, count(*) FILTER (WHERE i.private = '{"public": true}') AS public_items
    FROM pgstac.items AS i GROUP BY i.collection
)
SELECT count(w.id) AS wanted,
       count(*) FILTER (WHERE i.id IS NULL) AS missing,
       count(*) FILTER (WHERE w.id IS NULL) AS strays,
       count(*) FILTER (WHERE i.content <> w.item - '{id,geometry,collection,type}'::text[]) AS different,
       (SELECT count(*) FROM catalogue.pending) AS pending,
       (SELECT count(*) FROM catalogue.collections AS o LEFT JOIN counted AS c ON c.collection = o.collection_id
        WHERE (o.items, o.public_items) <> (coalesce(c.items, 0), coalesce(c.public_items, 0))) AS miscounted
FROM wanted AS w FULL JOIN pgstac.items AS i ON i.collection = w.collection AND i.id = w.id;

-- name: forget_pending
DELETE FROM catalogue.pending;

-- name: pending
-- How many assets the catalogue has not caught up with.
SELECT count(*) AS count, min(noted_at) AS since, min(reason) AS reason FROM catalogue.pending;

-- name: due
SELECT asset_id FROM catalogue.pending WHERE due_at <= now() ORDER BY due_at LIMIT %(limit)s;

-- name: hold_asset
-- Nothing is returned while somebody changes the asset: its own transaction settles the entry.
SELECT asset_id FROM app.geospatial_assets WHERE asset_id = %(asset_id)s FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_timeout
SET LOCAL lock_timeout = '1s';

-- name: settle
SELECT app.settle_item(%(asset_id)s);

-- name: settled
DELETE FROM catalogue.pending WHERE asset_id = %(asset_id)s;

-- name: postpone
UPDATE catalogue.pending
SET attempts = attempts + 1, reason = %(reason)s,
    due_at = now() + make_interval(secs => least(2 ^ least(attempts, 20), 300))
WHERE asset_id = %(asset_id)s;

-- name: exported
SELECT app.exported_asset(%(asset_id)s, %(revision)s) AS entry;

-- name: hide_external
SELECT external.hide_asset(%(asset_id)s) AS hidden;

-- name: put_external
INSERT INTO external.assets (asset_id, revision, platform_id, title, data_type, blob_path, table_name, outputs)
VALUES (%(asset_id)s, %(revision)s, %(platform_id)s, %(title)s, %(data_type)s, %(blob_path)s, %(table_name)s,
        %(outputs)s::jsonb)
ON CONFLICT (asset_id) DO UPDATE
SET revision = EXCLUDED.revision, platform_id = EXCLUDED.platform_id, title = EXCLUDED.title,
    data_type = EXCLUDED.data_type, blob_path = EXCLUDED.blob_path, table_name = EXCLUDED.table_name,
    outputs = EXCLUDED.outputs, exported_at = now();

-- name: put_external_item
SELECT catalogue.put_item(%(item)s::jsonb, %(collection)s::jsonb, %(platform_id)s);

-- name: put_external_side_items
SELECT catalogue.put_side_items(%(collection)s, %(item)s, %(items)s::jsonb);

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
