-- All items of an asset as the catalogue has them: the main one, and those beside it. None if it shows nothing of it.
CREATE OR REPLACE FUNCTION app.catalogue_items(_asset_id text) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _outputs jsonb := (SELECT s.outputs FROM app.shown_revision(_asset_id) AS s);
    _main jsonb;
BEGIN
    IF jsonb_typeof(_outputs -> 'stac_item') IS DISTINCT FROM 'object' THEN
        RETURN;
    END IF;
    _main := app.catalogue_item(_asset_id);
    RETURN NEXT _main;
    RETURN QUERY SELECT item FROM jsonb_array_elements(app.side_items(_main, _outputs)) AS item;
END
$$;
