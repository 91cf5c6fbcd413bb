-- All items of an asset as the catalogue has them: the main one, and those beside it.
CREATE OR REPLACE FUNCTION app.catalogue_items(_asset_id text) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _main jsonb := app.catalogue_item(_asset_id);
BEGIN
    RETURN NEXT _main;
    RETURN QUERY
    SELECT one
    FROM app.geospatial_assets AS a CROSS JOIN LATERAL jsonb_array_elements(app.side_items(_main, a.outputs)) AS one
    WHERE a.asset_id = _asset_id;
END
$$;
