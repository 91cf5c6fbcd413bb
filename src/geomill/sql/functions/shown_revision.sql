-- The revision of an asset that the catalogue shows: the public one if there is one, else the newest that has completed.
-- Nothing for an asset that was revoked, unpublished or never completed.
CREATE OR REPLACE FUNCTION app.shown_revision(
    _asset_id text,
    OUT revision integer, OUT outputs jsonb, OUT table_name text, OUT blob_path text,
    OUT approval text, OUT clearance text, OUT is_public boolean
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
BEGIN
    SELECT a.public_revision, a.served_revision, a.approval_state, a.clearance_state, a.outputs, a.table_name, a.blob_path
    INTO _asset
    FROM app.geospatial_assets AS a
    WHERE a.asset_id = _asset_id AND a.deleted_at IS NULL AND a.served_revision > a.data_deleted_through;
    revision := coalesce(_asset.public_revision, _asset.served_revision);
    is_public := _asset.public_revision IS NOT NULL;
    approval := CASE WHEN is_public THEN 'approved' ELSE _asset.approval_state::text END;
    clearance := CASE WHEN is_public THEN 'public' ELSE _asset.clearance_state::text END;
    IF revision = _asset.served_revision THEN
        outputs := _asset.outputs;
        table_name := _asset.table_name;
        blob_path := _asset.blob_path;
    ELSE
        SELECT r.outputs, r.table_name, r.blob_path INTO outputs, table_name, blob_path
        FROM app.asset_revisions AS r WHERE r.asset_id = _asset_id AND r.revision = shown_revision.revision;
    END IF;
END
$$;
