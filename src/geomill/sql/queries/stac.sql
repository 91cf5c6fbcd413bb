-- The STAC API. It runs on asyncpg, whose parameters are numbered.

-- name: search
SELECT catalogue.search_items($1::text::jsonb, $2::boolean, $3::text, $4::text, $5::text[], $6::boolean);

-- name: collections
SELECT catalogue.search_collections($1::text::jsonb, $2::boolean, $3::text);

-- name: version
SELECT app.catalogue_version($1::text, $2::text, $3::integer);

-- name: files
-- Of the revision that is served, or of one that was.
SELECT to_jsonb(found) FROM (
    SELECT a.asset_id, a.platform_id, a.approval_state, a.clearance_state, a.served_revision = $2::integer AS current,
           CASE WHEN a.served_revision = $2::integer THEN a.outputs -> 'files' ELSE r.outputs -> 'files' END AS files
    FROM app.geospatial_assets AS a
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = $2::integer
    WHERE a.asset_id = $1::text AND a.deleted_at IS NULL AND $2::integer > a.data_deleted_through
) AS found;

-- name: external_files
SELECT jsonb_build_object('asset_id', asset_id, 'platform_id', platform_id, 'current', true,
                          'approval_state', 'approved', 'clearance_state', 'public', 'files', outputs -> 'files')
FROM external.assets WHERE asset_id = $1::text AND revision = $2::integer;
