-- An asset's item as the catalogue has it: what its job has made, with who it is, which revision, and who may see it.
-- Places of files are relative to the root of the STAC API.
CREATE OR REPLACE FUNCTION app.catalogue_item(_asset_id text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _shown record;
    _before integer;
    _item jsonb;
BEGIN
    SELECT a.asset_id, a.platform_id, a.data_type, a.stac_collection_id, a.stac_item_id, a.data_deleted_through,
           a.withdrawn_through
    INTO _asset
    FROM app.geospatial_assets AS a WHERE a.asset_id = _asset_id;
    SELECT s.* INTO _shown FROM app.shown_revision(_asset_id) AS s;
    SELECT max(r.revision) INTO _before
    FROM app.asset_revisions AS r
    WHERE r.asset_id = _asset_id AND r.revision < _shown.revision
      AND r.revision > greatest(_asset.data_deleted_through, _asset.withdrawn_through) AND r.outputs ? 'stac_item'
      AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                      WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                        AND l.job_id IS NOT DISTINCT FROM r.job_id);
    _item := app.revision_item(
        _shown.outputs -> 'stac_item', _asset_id, _shown.revision, _before, _asset.stac_collection_id,
        _asset.stac_item_id
    );
    RETURN _item || jsonb_build_object(
        'links', _item -> 'links' || CASE WHEN _shown.outputs ? 'scenes' AND _shown.blob_path IS NULL THEN '[]'  -- they have their own
            ELSE app.map_links(_asset_id, _asset.data_type = 'raster') END,
        'assets', (_item -> 'assets') || app.layer_assets(_asset_id, _shown.table_name, _shown.outputs),
        'properties', (_item -> 'properties') || jsonb_build_object(
            'geomill:asset_id', _asset.asset_id,
            'geomill:revision', _shown.revision,
            'geomill:platform', _asset.platform_id,
            'geomill:approval', _shown.approval,
            'geomill:clearance', _shown.clearance,
            'geomill:public', _shown.is_public,
            'version', _shown.revision::text,
            'deprecated', false
        )
    );
END
$$;
