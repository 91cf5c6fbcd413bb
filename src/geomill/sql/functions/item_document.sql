-- Returns an item as a STAC document. Geomill stores items whole. For an item that pgstac's own tools have loaded, the
-- values that it shares with its collection are added again.
CREATE OR REPLACE FUNCTION catalogue.item_document(
    _id text, _collection text, _geometry public.geometry, _content jsonb
) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _document jsonb := (_content - 'pgstac:base_item') || jsonb_build_object(
        'id', _id, 'collection', _collection, 'type', 'Feature', 'geometry', ST_AsGeoJSON(_geometry, 20)::jsonb
    );
BEGIN
    IF _content ? 'stac_version' AND NOT _content ? 'pgstac:base_item' THEN
        RETURN _document;
    END IF;
    RETURN content_hydrate(
        _document, collection_base_item(_collection, (_content ->> 'pgstac:base_item')::integer), '{}'
    );
END
$$;
