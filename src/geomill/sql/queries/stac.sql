-- The STAC API. It runs on asyncpg, whose parameters are numbered.

-- name: search
SELECT catalogue.search_items($1::text::jsonb, $2::boolean, $3::text, $4::text, $5::text[], $6::boolean);

-- name: collections
SELECT catalogue.search_collections($1::text::jsonb, $2::boolean, $3::text);

-- name: version
SELECT app.catalogue_version($1::text, $2::text, $3::integer);

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
