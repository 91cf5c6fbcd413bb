-- Assets that are served: in the internal zone from the assets themselves, in the external one from exported copies.
-- Only the outputs that serving needs are read: the inventory of a mosaic can be long.
-- A page of vectors has a line for each table: the tables of a layer that was split are collections of their own.

-- name: internal_find
SELECT a.asset_id, a.platform_id, coalesce(a.outputs -> 'dataset_metadata' ->> 'title', a.table_stem) AS title,
       a.data_type, a.served_revision AS revision, a.outputs -> 'dataset_metadata' AS metadata,
       a.blob_path, a.table_name, a.approval_state, a.clearance_state,
       a.outputs ->> 'raster_type' AS raster_type, a.outputs -> 'statistics' AS statistics, a.outputs -> 'bbox' AS bbox,
       a.outputs -> 'tables' AS tables, a.outputs -> 'scenes' IS NOT NULL AS series,
       CASE WHEN jsonb_typeof(a.outputs -> 'stac_item') = 'object' THEN a.stac_item_id END AS stac_item_id,
       a.stac_collection_id, a.public_revision, a.withdrawn_through, a.outputs -> 'styles' AS source_styles,
       (SELECT jsonb_build_object('default', max(t.name) FILTER (WHERE t.is_default), 'styles', jsonb_object_agg(t.name, t.style))
        FROM app.asset_styles AS t WHERE t.asset_id = a.asset_id) AS own_styles
FROM app.geospatial_assets AS a
WHERE a.asset_id = %(asset_id)s AND {served asset as a}

-- name: internal_public
-- The public revision of an asset, if it is not the newest.
SELECT a.asset_id, a.platform_id, coalesce(r.outputs -> 'dataset_metadata' ->> 'title', a.table_stem) AS title,
       a.data_type, r.revision, r.outputs -> 'dataset_metadata' AS metadata, r.blob_path, r.table_name,
       r.outputs ->> 'raster_type' AS raster_type, r.outputs -> 'statistics' AS statistics, r.outputs -> 'bbox' AS bbox,
       r.outputs -> 'tables' AS tables, r.outputs -> 'scenes' IS NOT NULL AS series,
       CASE WHEN jsonb_typeof(r.outputs -> 'stac_item') = 'object' THEN a.stac_item_id END AS stac_item_id,
       a.stac_collection_id, a.public_revision, a.withdrawn_through, r.outputs -> 'styles' AS source_styles,
       (SELECT jsonb_build_object('default', max(t.name) FILTER (WHERE t.is_default), 'styles', jsonb_object_agg(t.name, t.style))
        FROM app.asset_styles AS t WHERE t.asset_id = a.asset_id) AS own_styles
FROM app.geospatial_assets AS a
JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = a.public_revision
WHERE a.asset_id = %(asset_id)s

-- name: job_result
-- The result of the latest completed attempt at a stage job, or of a job by its own id.
SELECT j.result_data
FROM dagapp.dag_jobs AS j
WHERE j.job_id IN (
          SELECT s.run_id FROM dagapp.dag_stage_jobs AS s WHERE s.job_id = %(job_id)s UNION ALL SELECT %(job_id)s)
  AND j.asset_id IS NULL AND j.status = 'completed' AND j.result_data IS NOT NULL
ORDER BY j.job_id DESC
LIMIT 1;

-- name: internal_page
-- A line shows the newest revision to callers who may see the asset itself, and the public one to everybody else.
SELECT a.asset_id, a.platform_id, coalesce(a.outputs -> 'dataset_metadata' ->> 'title', a.table_stem) AS title,
       a.data_type, a.revision, a.outputs -> 'dataset_metadata' AS metadata, a.blob_path, a.table_name,
       a.approval_state, a.clearance_state, a.public_revision, a.outputs -> 'bbox' AS bbox,
       a.outputs -> 'tables' AS tables, layer.number AS layer, count(*) OVER () AS matched
FROM (
    SELECT n.asset_id, n.platform_id, n.table_stem, n.data_type, n.created_at, n.public_revision,
           s.revision, s.blob_path, s.table_name, s.outputs, s.approval_state, s.clearance_state
    FROM app.geospatial_assets AS n
    CROSS JOIN LATERAL (SELECT {seen revision of asset as n} AS revision) AS seen
    CROSS JOIN LATERAL (
        SELECT n.served_revision AS revision, n.blob_path, n.table_name, n.outputs, n.approval_state::text,
               n.clearance_state::text
        WHERE seen.revision = n.served_revision
        UNION ALL
        SELECT r.revision, r.blob_path, r.table_name, r.outputs, 'approved', 'public'
        FROM app.asset_revisions AS r
        WHERE seen.revision <> n.served_revision AND r.asset_id = n.asset_id AND r.revision = seen.revision
    ) AS s
    WHERE {served asset as n}
) AS a
CROSS JOIN LATERAL generate_series(0, CASE WHEN %(data_type)s::text = 'vector' AND jsonb_typeof(a.outputs -> 'tables') = 'array'
                                           THEN greatest(jsonb_array_length(a.outputs -> 'tables') - 1, 0) ELSE 0 END) AS layer (number)
WHERE (%(data_type)s::text IS NULL OR a.data_type::text = %(data_type)s)
  AND (%(data_type)s::text IS DISTINCT FROM 'vector' OR a.table_name IS NOT NULL)
  AND (%(bbox)s::float8[] IS NULL OR (
        (a.outputs -> 'bbox' ->> 0)::float8 < (%(bbox)s::float8[])[3] AND (a.outputs -> 'bbox' ->> 2)::float8 > (%(bbox)s::float8[])[1]
    AND (a.outputs -> 'bbox' ->> 1)::float8 < (%(bbox)s::float8[])[4] AND (a.outputs -> 'bbox' ->> 3)::float8 > (%(bbox)s::float8[])[2]))
ORDER BY a.created_at DESC, a.asset_id DESC, layer.number
LIMIT %(limit)s OFFSET %(offset)s

-- name: internal_scene
-- One scene of a series of rasters.
SELECT CASE WHEN a.served_revision = %(revision)s THEN a.outputs ELSE r.outputs END -> 'scenes' -> %(name)s::text AS scene
FROM app.geospatial_assets AS a
LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = %(revision)s
WHERE a.asset_id = %(asset_id)s

-- name: internal_scenes
SELECT CASE WHEN a.served_revision = %(revision)s THEN a.outputs ELSE r.outputs END -> 'scenes' AS scenes
FROM app.geospatial_assets AS a
LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = %(revision)s
WHERE a.asset_id = %(asset_id)s

-- name: external_scenes
SELECT e.outputs -> 'scenes' AS scenes
FROM external.assets AS e
WHERE e.asset_id = %(asset_id)s AND e.revision = %(revision)s

-- name: external_scene
SELECT e.outputs -> 'scenes' -> %(name)s::text AS scene
FROM external.assets AS e
WHERE e.asset_id = %(asset_id)s AND e.revision = %(revision)s

-- name: external_find
SELECT e.asset_id, e.platform_id, e.title, e.data_type, e.revision, e.revision AS public_revision, e.blob_path,
       e.outputs -> 'dataset_metadata' AS metadata,
       e.table_name, e.outputs ->> 'raster_type' AS raster_type, e.outputs -> 'statistics' AS statistics, e.outputs -> 'bbox' AS bbox,
       e.outputs -> 'tables' AS tables, e.outputs -> 'scenes' IS NOT NULL AS series,
       e.outputs ->> 'stac_item_id' AS stac_item_id, e.outputs ->> 'stac_collection_id' AS stac_collection_id,
       e.outputs -> 'styles' AS own_styles
FROM external.assets AS e
WHERE e.asset_id = %(asset_id)s

-- name: external_page
SELECT e.asset_id, e.platform_id, e.title, e.data_type, e.revision, e.revision AS public_revision, e.blob_path,
       e.outputs -> 'dataset_metadata' AS metadata,
       e.table_name, e.outputs -> 'bbox' AS bbox, e.outputs -> 'tables' AS tables, layer.number AS layer, count(*) OVER () AS matched
FROM external.assets AS e
CROSS JOIN LATERAL generate_series(0, CASE WHEN %(data_type)s::text = 'vector' AND jsonb_typeof(e.outputs -> 'tables') = 'array'
                                           THEN greatest(jsonb_array_length(e.outputs -> 'tables') - 1, 0) ELSE 0 END) AS layer (number)
WHERE (%(data_type)s::text IS NULL OR e.data_type::text = %(data_type)s)
  AND (%(data_type)s::text IS DISTINCT FROM 'vector' OR e.table_name IS NOT NULL)
  AND (%(bbox)s::float8[] IS NULL OR (
        (e.outputs -> 'bbox' ->> 0)::float8 < (%(bbox)s::float8[])[3] AND (e.outputs -> 'bbox' ->> 2)::float8 > (%(bbox)s::float8[])[1]
    AND (e.outputs -> 'bbox' ->> 1)::float8 < (%(bbox)s::float8[])[4] AND (e.outputs -> 'bbox' ->> 3)::float8 > (%(bbox)s::float8[])[2]))
ORDER BY e.exported_at DESC, e.asset_id DESC, layer.number
LIMIT %(limit)s OFFSET %(offset)s

-- name: tables
-- The columns of tables in geo, with TiPG's names for types.
SELECT c.relname AS table_name,
       obj_description(c.oid, 'pg_class') AS description,
       (SELECT k.attname
        FROM pg_index AS i JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = i.indkey[0]
        WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1) AS key,
       jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
           'name', a.attname,
           'type', t.name,
           'description', col_description(c.oid, a.attnum),
           'geometry_type', CASE WHEN t.name IN ('geometry', 'geography') THEN postgis_typmod_type(a.atttypmod) END,
           'srid', CASE WHEN t.name IN ('geometry', 'geography')
                        THEN coalesce(nullif(postgis_typmod_srid(a.atttypmod), 0), 4326) END
       )) ORDER BY a.attnum) AS columns
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = 'geo'
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN LATERAL (
    SELECT CASE format_type(a.atttypid, NULL)
        WHEN 'timestamp without time zone' THEN 'timestamp'
        WHEN 'timestamp with time zone' THEN 'timestamptz'
        WHEN 'double precision' THEN 'float8'
        WHEN 'character varying' THEN 'text'
        ELSE CASE
            WHEN format_type(a.atttypid, NULL) LIKE '%%geometry' THEN 'geometry'
            WHEN format_type(a.atttypid, NULL) LIKE '%%geography' THEN 'geography'
            ELSE format_type(a.atttypid, NULL)
        END
    END AS name
) AS t
WHERE c.relname = ANY (%(names)s) AND c.relkind IN ('r', 'p')
GROUP BY c.oid, c.relname
