-- An asset's item as the catalogue has it: what its job has made, with who it is, which revision, and who may see it.
-- Places of files are relative to the root of the STAC API.
CREATE OR REPLACE FUNCTION app.catalogue_item(_asset_id text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _before integer;
    _item jsonb;
BEGIN
    SELECT a.*, a.outputs -> 'stac_item' AS item INTO _asset FROM app.geospatial_assets AS a WHERE a.asset_id = _asset_id;
    SELECT max(r.revision) INTO _before
    FROM app.asset_revisions AS r
    WHERE r.asset_id = _asset_id AND r.revision < _asset.served_revision AND r.revision > _asset.data_deleted_through
      AND r.outputs ? 'stac_item';
    _item := app.revision_item(
        _asset.item, _asset_id, _asset.served_revision, _before, _asset.stac_collection_id, _asset.stac_item_id
    );
    RETURN _item || jsonb_build_object(
        'links', _item -> 'links' || CASE WHEN _asset.outputs ? 'scenes' AND _asset.blob_path IS NULL THEN '[]'  -- they have their own
            ELSE app.map_links(_asset_id, _asset.data_type = 'raster') END,
        'assets', (_item -> 'assets') || app.layer_assets(_asset_id, _asset.table_name, _asset.outputs),
        'properties', (_asset.item -> 'properties') || jsonb_build_object(
            'geomill:asset_id', _asset.asset_id,
            'geomill:revision', _asset.served_revision,
            'geomill:platform', _asset.platform_id,
            'geomill:approval', _asset.approval_state,
            'geomill:clearance', _asset.clearance_state,
            'geomill:public', _asset.approval_state = 'approved' AND _asset.clearance_state = 'public',
            'version', _asset.served_revision::text,
            'deprecated', false
        )
    );
END
$$;
