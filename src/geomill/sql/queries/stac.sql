-- The STAC API. It runs on asyncpg, whose parameters are numbered.

-- name: search
SELECT catalogue.search_items($1::text::jsonb, $2::boolean, $3::text, $4::text, $5::text[], $6::boolean);

-- name: collections
SELECT catalogue.search_collections($1::text::jsonb, $2::boolean, $3::text);

-- name: version
-- A revision of an asset beside the one that the catalogue shows: a superseded one, or one that waits for review while an
-- earlier one is public. Nothing for a revision that was withdrawn or deleted.
SELECT to_jsonb(v) FROM (
    SELECT a.asset_id, a.platform_id, s.revision AS shown_revision,
           CASE WHEN a.served_revision = $3::integer THEN a.outputs ELSE r.outputs END -> 'stac_item' AS item,
           CASE WHEN a.served_revision = $3::integer THEN a.outputs ELSE r.outputs END -> 'dataset_metadata' AS metadata,
           app.revision_before(a.asset_id, $3::integer) AS revision_before
    FROM app.geospatial_assets AS a
    CROSS JOIN LATERAL (
        SELECT CASE WHEN {served asset as a} THEN coalesce(a.public_revision, a.served_revision) END AS revision
    ) AS s
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = $3::integer
    WHERE a.stac_collection_id = $1::text AND a.stac_item_id = $2::text AND a.deleted_at IS NULL
      AND $3::integer > greatest(a.data_deleted_through, a.withdrawn_through) AND $3::integer IS DISTINCT FROM s.revision
      AND (a.served_revision = $3::integer OR NOT EXISTS (
          SELECT FROM app.asset_leftovers AS l
          WHERE l.asset_id = r.asset_id AND l.revision = r.revision AND l.job_id IS NOT DISTINCT FROM r.job_id))
) AS v
WHERE jsonb_typeof(v.item) = 'object';

-- name: files
-- The files of a revision that was not withdrawn, whether it is public, and whether it is the newest completed one.
SELECT to_jsonb(found) FROM (
    SELECT a.asset_id, a.platform_id, coalesce(a.public_revision = $2::integer, false) AS public,
           coalesce(a.served_revision = $2::integer, false) AS newest,
           CASE WHEN a.served_revision = $2::integer THEN a.outputs -> 'files' ELSE r.outputs -> 'files' END AS files
    FROM app.geospatial_assets AS a
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = $2::integer
    WHERE a.asset_id = $1::text AND a.deleted_at IS NULL
      AND $2::integer > greatest(a.data_deleted_through, a.withdrawn_through)
      AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                      WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                        AND l.job_id IS NOT DISTINCT FROM r.job_id)
) AS found;

-- name: external_files
SELECT jsonb_build_object('asset_id', asset_id, 'platform_id', platform_id, 'public', true, 'newest', true,
                          'files', outputs -> 'files')
FROM external.assets WHERE asset_id = $1::text AND revision = $2::integer;
