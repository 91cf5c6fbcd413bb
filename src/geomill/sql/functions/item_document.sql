-- An item as STAC has it. Ours are stored whole; to one that pgstac's own tools have loaded, what its collection says for
-- all is put back.
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
