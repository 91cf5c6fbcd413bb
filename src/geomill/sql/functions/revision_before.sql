-- The latest revision of an asset before the given one that has an item and can still be read: it was neither withdrawn
-- nor deleted.
CREATE OR REPLACE FUNCTION app.revision_before(_asset_id text, _revision integer) RETURNS integer
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN (
        SELECT max(r.revision)
        FROM app.asset_revisions AS r JOIN app.geospatial_assets AS a ON a.asset_id = r.asset_id
        WHERE r.asset_id = _asset_id AND r.revision < _revision
          AND r.revision > greatest(a.data_deleted_through, a.withdrawn_through) AND r.outputs ? 'stac_item'
          AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                          WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                            AND l.job_id IS NOT DISTINCT FROM r.job_id)
    );
END
$$;
