-- Removes the entry of an asset from the external zone, so that nothing of it is served there. Returns whether there was
-- one. The function runs as the owner: a gateway may call it, and may do nothing else in this database.
CREATE OR REPLACE FUNCTION external.hide_asset(_asset_id text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog
AS $$
DECLARE
    _entry record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(_asset_id, 13));
    SELECT e.outputs ->> 'stac_collection_id' AS collection, e.outputs ->> 'stac_item_id' AS item INTO _entry
    FROM external.assets AS e WHERE e.asset_id = _asset_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF _entry.item IS NOT NULL THEN
        PERFORM catalogue.write_items(
            _entry.collection, NULL, NULL, '{}', ARRAY[_entry.item], ARRAY[_entry.item]
        );
    END IF;
    DELETE FROM external.assets AS e WHERE e.asset_id = _asset_id;
    RETURN true;
END
$$;
