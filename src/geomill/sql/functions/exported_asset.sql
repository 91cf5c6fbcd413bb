-- What is told outside of a revision that is exported: of the asset's row, or of the log if it was superseded meanwhile.
-- Nothing if it has no outputs.
CREATE OR REPLACE FUNCTION app.exported_asset(_asset_id text, _revision integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _item jsonb;
BEGIN
    SELECT a.platform_id, a.stac_item_id, a.stac_collection_id, a.data_type,
           CASE WHEN a.served_revision = _revision THEN a.outputs ELSE r.outputs END AS outputs,
           CASE WHEN a.served_revision = _revision THEN a.table_name ELSE r.table_name END AS table_name,
           CASE WHEN a.served_revision = _revision THEN a.blob_path ELSE r.blob_path END AS blob_path
    INTO _asset
    FROM app.geospatial_assets AS a
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = _revision
    WHERE a.asset_id = _asset_id;
    IF jsonb_typeof(_asset.outputs -> 'stac_item') = 'object' THEN
        _item := app.revision_item(
            _asset.outputs -> 'stac_item', _asset_id, _revision, NULL, _asset.stac_collection_id, _asset.stac_item_id
        );
        _item := _item || jsonb_build_object(
            'links', CASE WHEN _asset.outputs ? 'scenes' AND _asset.blob_path IS NULL THEN '[]'  -- they have their own
            ELSE app.map_links(_asset_id, _asset.data_type = 'raster') END,
            'assets', (_item -> 'assets') || app.layer_assets(_asset_id, _asset.table_name, _asset.outputs),
            'properties', (_item -> 'properties') || jsonb_build_object(
                'geomill:asset_id', _asset_id, 'geomill:revision', _revision, 'geomill:platform', _asset.platform_id,
                'geomill:approval', 'approved', 'geomill:clearance', 'public', 'geomill:public', true,
                'version', _revision::text, 'deprecated', false
            )
        );
    END IF;
    RETURN jsonb_build_object(
        'platform_id', _asset.platform_id,
        'title', coalesce(_item #>> '{properties,title}', _asset.stac_item_id),
        'data_type', _asset.data_type,
        'table_name', _asset.table_name,
        'blob_path', _asset.blob_path,
        'outputs', _asset.outputs - '{stac_item,stac_items,stac_collection}'::text[] || jsonb_build_object(
            'stac_item_id', _asset.stac_item_id, 'stac_collection_id', _asset.stac_collection_id
        ),
        'item', _item,
        'side_items', CASE WHEN _item IS NULL THEN '[]' ELSE app.side_items(_item, _asset.outputs) END,
        'collection', jsonb_build_object('stac_version', '1.1.0', 'license', 'other',
                                         'description', format('Assets of %s', _asset.stac_collection_id))
            || CASE WHEN jsonb_typeof(_asset.outputs -> 'stac_collection') = 'object'
                    THEN _asset.outputs -> 'stac_collection' ELSE '{}' END
    );
END
$$;
