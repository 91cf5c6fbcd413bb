-- The use of storage, from the inventories of assets: nothing lists the objects themselves. The same file counts once,
-- also after a rollback, when two revisions have it. A workflow writes the inventory, so no size in it is trusted.

-- name: zones
-- By zone and platform. Of bronze, only uploads are known.
WITH kept AS (
    SELECT a.platform_id, a.asset_id, a.outputs -> 'files' AS files
    FROM app.geospatial_assets AS a
    WHERE a.served_revision > a.data_deleted_through
    UNION ALL
    SELECT a.platform_id, r.asset_id, r.outputs -> 'files'
    FROM app.asset_revisions AS r
    JOIN app.geospatial_assets AS a USING (asset_id)
    WHERE r.outputs IS NOT NULL AND r.revision > a.data_deleted_through
      AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                      WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                        AND l.job_id IS NOT DISTINCT FROM r.job_id)
), listed AS (
    SELECT DISTINCT file ->> 'zone' AS zone, kept.platform_id, kept.asset_id, file ->> 'container' AS container, file ->> 'path' AS path,
           CASE WHEN jsonb_typeof(file -> 'size') = 'number'
                THEN least(greatest((file ->> 'size')::numeric, 0), 1e15) ELSE 0 END AS size
    FROM kept
    CROSS JOIN LATERAL jsonb_array_elements(
        CASE WHEN jsonb_typeof(kept.files) = 'array' THEN kept.files ELSE '[]' END) AS file
    UNION ALL
    SELECT 'external', a.platform_id, a.asset_id, file ->> 'container', file ->> 'path',
           CASE WHEN jsonb_typeof(file -> 'size') = 'number'
                THEN least(greatest((file ->> 'size')::numeric, 0), 1e15) ELSE 0 END
    FROM app.geospatial_assets AS a
    CROSS JOIN LATERAL jsonb_array_elements(
        CASE WHEN jsonb_typeof(a.external_files) = 'array' THEN a.external_files ELSE '[]' END) AS file
    WHERE a.external_revision IS NOT NULL
)
SELECT zone, platform_id, count(DISTINCT asset_id) AS assets, count(*) AS objects,
       least(coalesce(sum(size), 0), 1e18)::bigint AS bytes
FROM listed
WHERE zone IS NOT NULL
GROUP BY zone, platform_id
UNION ALL
SELECT 'bronze', platform_id, 0, count(*), coalesce(sum(received_bytes), 0)::bigint
FROM app.uploads
WHERE status <> 'failed'
GROUP BY platform_id
ORDER BY 1, 2;

-- name: features
-- The tables of features, with their indexes.
SELECT count(*) AS tables, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'geo' AND c.relkind = 'r';

-- name: assets
-- A page of assets, the newest first, each with the files and tables of all its revisions whose data is there.
WITH chosen AS MATERIALIZED (
    SELECT asset_id, platform_id, data_type::text, revision, served_revision, data_deleted_through, outputs, table_name,
           external_files, external_revision, deleted_at, created_at
    FROM app.geospatial_assets
    WHERE (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
      AND (%(before)s::timestamptz IS NULL OR (created_at, asset_id) < (%(before)s::timestamptz, %(before_id)s::text))
    ORDER BY created_at DESC, asset_id DESC
    LIMIT %(limit)s
), kept AS MATERIALIZED (
    SELECT c.asset_id, c.served_revision AS revision, c.outputs -> 'files' AS files, c.table_name
    FROM chosen AS c
    WHERE c.served_revision > c.data_deleted_through
    UNION ALL
    SELECT r.asset_id, r.revision, r.outputs -> 'files', r.table_name
    FROM app.asset_revisions AS r
    JOIN chosen AS c USING (asset_id)
    WHERE r.outputs IS NOT NULL AND r.revision > c.data_deleted_through
      AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                      WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                        AND l.job_id IS NOT DISTINCT FROM r.job_id)
), silver AS (
    SELECT file.asset_id, count(*) AS objects, least(sum(file.size), 1e18)::bigint AS bytes
    FROM (
        SELECT DISTINCT kept.asset_id, entry ->> 'container' AS container, entry ->> 'path' AS path,
               CASE WHEN jsonb_typeof(entry -> 'size') = 'number'
                THEN least(greatest((entry ->> 'size')::numeric, 0), 1e15) ELSE 0 END AS size
        FROM kept
        CROSS JOIN LATERAL jsonb_array_elements(
            CASE WHEN jsonb_typeof(kept.files) = 'array' THEN kept.files ELSE '[]' END) AS entry
    ) AS file
    GROUP BY file.asset_id
), tables AS (
    SELECT t.asset_id, sum(pg_total_relation_size(to_regclass('geo.' || quote_ident(t.table_name))))::bigint AS bytes
    FROM (SELECT DISTINCT asset_id, table_name FROM kept WHERE table_name IS NOT NULL) AS t
    GROUP BY t.asset_id
)
SELECT c.asset_id, c.platform_id, c.data_type, c.revision, c.deleted_at, c.created_at,
       (SELECT count(DISTINCT kept.revision) FROM kept WHERE kept.asset_id = c.asset_id) AS revisions,
       coalesce(silver.objects, 0) AS objects, coalesce(silver.bytes, 0) AS bytes,
       coalesce(tables.bytes, 0) AS table_bytes,
       coalesce(outside.objects, 0) AS external_objects, coalesce(outside.bytes, 0) AS external_bytes
FROM chosen AS c
LEFT JOIN silver USING (asset_id)
LEFT JOIN tables USING (asset_id)
LEFT JOIN LATERAL (
    SELECT count(*) AS objects,
           least(coalesce(sum(CASE WHEN jsonb_typeof(entry -> 'size') = 'number'
                                   THEN least(greatest((entry ->> 'size')::numeric, 0), 1e15) ELSE 0 END), 0), 1e18)::bigint
               AS bytes
    FROM jsonb_array_elements(
        CASE WHEN jsonb_typeof(c.external_files) = 'array' THEN c.external_files ELSE '[]' END) AS entry
    WHERE c.external_revision IS NOT NULL
) AS outside ON true
ORDER BY c.created_at DESC, c.asset_id DESC;
