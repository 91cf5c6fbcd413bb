-- Makes the catalogue say of an asset what is true of it now. The caller holds the asset's row.
CREATE OR REPLACE FUNCTION app.settle_item(_asset_id text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _shown record;
    _main jsonb;
BEGIN
    SELECT a.platform_id, a.stac_item_id, a.stac_collection_id,
           coalesce(jsonb_typeof(a.outputs -> 'stac_items') = 'array', false) OR EXISTS (
               SELECT FROM app.asset_revisions AS r
               WHERE r.asset_id = a.asset_id AND jsonb_typeof(r.outputs -> 'stac_items') = 'array'
           ) AS has_sides
    INTO STRICT _asset
    FROM app.geospatial_assets AS a WHERE a.asset_id = _asset_id;
    SELECT s.* INTO _shown FROM app.shown_revision(_asset_id) AS s;
    IF jsonb_typeof(_shown.outputs -> 'stac_item') IS DISTINCT FROM 'object' THEN
        PERFORM catalogue.remove_item(_asset.stac_collection_id, _asset.stac_item_id);
        IF _asset.has_sides THEN
            PERFORM catalogue.put_side_items(_asset.stac_collection_id, _asset.stac_item_id, '[]');
        END IF;
        RETURN;
    END IF;
    _main := app.catalogue_item(_asset_id);
    PERFORM catalogue.put_item(
        _main,
        jsonb_build_object('stac_version', '1.1.0', 'license', 'other',
                           'description', format('Assets of %s', _asset.stac_collection_id))
            || CASE WHEN jsonb_typeof(_shown.outputs -> 'stac_collection') = 'object'
                    THEN _shown.outputs -> 'stac_collection' ELSE '{}' END,
        _asset.platform_id
    );
    IF _asset.has_sides THEN
        PERFORM catalogue.put_side_items(
            _asset.stac_collection_id, _asset.stac_item_id, app.side_items(_main, _shown.outputs)
        );
    END IF;
END
$$;
