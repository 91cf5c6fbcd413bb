-- Replaces the styles of an asset in the external zone: those that its servers use, and those that its item shows. Returns
-- whether the asset is there. The function runs as the owner: a gateway may call it, and changes nothing else by it.
CREATE OR REPLACE FUNCTION external.style_asset(_asset_id text, _styles jsonb, _renders jsonb, _links jsonb)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog
AS $$
DECLARE
    _entry record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(_asset_id, 13));
    UPDATE external.assets AS e SET outputs = e.outputs || jsonb_build_object('styles', _styles)
    WHERE e.asset_id = _asset_id
    RETURNING e.outputs ->> 'stac_collection_id' AS collection, e.outputs ->> 'stac_item_id' AS item INTO _entry;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE pgstac.items AS i
    SET content = jsonb_set(
        CASE WHEN _renders IS NULL THEN i.content ELSE jsonb_set(i.content, '{properties,renders}', _renders) END,
        '{links}',
        coalesce((SELECT jsonb_agg(l) FROM jsonb_array_elements(i.content -> 'links') AS l WHERE l ->> 'rel' <> 'style'),
                 '[]') || _links
    )
    WHERE i.id = _entry.item AND i.collection = _entry.collection;
    RETURN true;
END
$$;
