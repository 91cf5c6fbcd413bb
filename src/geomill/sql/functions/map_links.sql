-- Links of an item to what the servers make of it: a map for people, tiles for programs. Relative to the STAC API, beside
-- which they lie.
CREATE OR REPLACE FUNCTION app.map_links(_asset_id text, _is_raster boolean) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN jsonb_build_array(
        jsonb_build_object('rel', 'alternate', 'type', 'text/html', 'title', 'Map', 'href', '../viewer/' || _asset_id),
        jsonb_build_object('rel', 'tilejson', 'type', 'application/json', 'title', 'Tiles', 'href', CASE WHEN _is_raster
            THEN format('../raster/assets/%s/WebMercatorQuad/tilejson.json', _asset_id)
            ELSE format('../vector/collections/%s/tiles/WebMercatorQuad/tilejson.json', _asset_id) END)
    );
END
$$;
