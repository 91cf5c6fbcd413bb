-- The items beside an asset's main one, of `outputs.stac_items`. They are in its collection, under its id, a dot and their
-- own, and share revision and visibility with it: what `_main`, as the catalogue has it, says of these is said of them.
CREATE OR REPLACE FUNCTION app.side_items(_main jsonb, _outputs jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _collection text := _main ->> 'collection';
    _properties jsonb := _main -> 'properties';
    _shared jsonb;
BEGIN
    SELECT jsonb_object_agg(p.key, p.value) INTO _shared
    FROM jsonb_each(_properties) AS p
    WHERE p.key IN ('geomill:asset_id', 'geomill:revision', 'geomill:platform', 'geomill:approval', 'geomill:clearance',
                    'geomill:public', 'version', 'deprecated');
    RETURN (
        SELECT coalesce(jsonb_agg(
            app.revision_item(
                one, _properties ->> 'geomill:asset_id', (_properties ->> 'geomill:revision')::integer, NULL,
                _collection, format('%s.', _main ->> 'id') || (one ->> 'id')
            ) || jsonb_build_object(
                'links', jsonb_build_array(jsonb_build_object(
                    'rel', 'related', 'type', 'application/geo+json', 'title', 'The whole',
                    'href', format('collections/%s/items/%s', _collection, _main ->> 'id')
                )) || CASE WHEN _outputs -> 'scenes' ? (one ->> 'id')
                           THEN app.map_links((_properties ->> 'geomill:asset_id') || '.' || (one ->> 'id'), true)
                           ELSE '[]' END,
                'properties', (one -> 'properties') || _shared
            )
        ), '[]')
        FROM jsonb_array_elements(
            CASE WHEN jsonb_typeof(_outputs -> 'stac_items') = 'array' THEN _outputs -> 'stac_items' ELSE '[]' END
        ) AS one
    );
END
$$;
