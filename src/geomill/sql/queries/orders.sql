-- Orders: jobs of geomill that carry out a decision about an asset. The data that they change follows from the asset's
-- row, never from inputs.

-- name: hold
-- The asset, if this job carries out its current order. Decisions about the asset wait until the transaction ends.
SELECT a.asset_id, a.data_type, a.blob_stem, a.table_stem,
       CASE %(purpose)s WHEN 'export' THEN a.public_revision WHEN 'delete' THEN a.data_deleted_through
                        ELSE a.revision END AS revision
FROM app.geospatial_assets AS a
WHERE a.asset_id = %(asset_id)s
  AND CASE %(purpose)s
          WHEN 'export' THEN a.adf_run_id = %(job_id)s AND a.public_revision IS NOT NULL
          WHEN 'withdraw' THEN a.adf_run_id = %(job_id)s
          WHEN 'delete' THEN a.delete_run_id = %(job_id)s
          ELSE false
      END
FOR SHARE;

-- name: count_files
SELECT coalesce(jsonb_array_length(o.files), 0) AS count
FROM (
    SELECT CASE WHEN a.served_revision = %(revision)s THEN a.outputs ELSE r.outputs END -> 'files' AS files
    FROM app.geospatial_assets AS a
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = %(revision)s
    WHERE a.asset_id = %(asset_id)s
) AS o
WHERE jsonb_typeof(o.files) = 'array';

-- name: files
-- A part of the inventory of a revision, in its order.
SELECT f.file
FROM (
    SELECT CASE WHEN a.served_revision = %(revision)s THEN a.outputs ELSE r.outputs END -> 'files' AS files
    FROM app.geospatial_assets AS a
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = %(revision)s
    WHERE a.asset_id = %(asset_id)s
) AS o
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(o.files) = 'array' THEN o.files ELSE '[]' END)
    WITH ORDINALITY AS f (file, number)
WHERE f.number > %(first)s AND (%(count)s::bigint IS NULL OR f.number <= %(first)s + %(count)s::bigint)
ORDER BY f.number;

-- name: containers
-- Containers in silver that hold files of the asset's revisions.
SELECT DISTINCT f.file ->> 'container' AS container
FROM (
    SELECT a.outputs -> 'files' AS files FROM app.geospatial_assets AS a WHERE a.asset_id = %(asset_id)s
    UNION ALL
    SELECT r.outputs -> 'files' FROM app.asset_revisions AS r WHERE r.asset_id = %(asset_id)s
) AS o
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(o.files) = 'array' THEN o.files ELSE '[]' END) AS f (file)
WHERE jsonb_typeof(f.file -> 'container') = 'string'
ORDER BY container;

-- name: drop_tables
SELECT app.drop_revision_tables(%(asset_id)s, %(job_id)s) AS dropped;

-- name: tables
-- The tables of the asset's revisions, up to a given one. No other table has such a name, because stems are unique.
SELECT t.tablename AS name
FROM pg_tables AS t
CROSS JOIN LATERAL regexp_match(substr(t.tablename, length(%(stem)s) + 1), '^_r([0-9]{1,9})(_points|_lines|_areas)?$') AS m
WHERE t.schemaname = 'geo' AND starts_with(t.tablename, %(stem)s) AND m[1]::integer BETWEEN 1 AND %(revision)s
ORDER BY t.tablename;
