-- What all items of revisions have in common: names, places of files, and links between versions. `_before` is the
-- revision before it that can still be looked at.
CREATE OR REPLACE FUNCTION app.revision_item(
    _item jsonb, _asset_id text, _revision integer, _before integer, _collection text, _id text
) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _version text := 'https://stac-extensions.github.io/version/v1.2.0/schema.json';
    _place text := format('collections/%s/items/%s', _collection, _id);
    _files text := format('files/%s/%s/', _asset_id, _revision);
BEGIN
    RETURN _item || jsonb_build_object(
        'type', 'Feature',
        'id', _id,
        'collection', _collection,
        'stac_extensions', coalesce(_item -> 'stac_extensions', '[]') - _version || to_jsonb(ARRAY[_version]),
        'assets', coalesce((
            SELECT jsonb_object_agg(one.key, one.value || jsonb_build_object(
                'href', regexp_replace(one.value ->> 'href', '^\./', _files)
            ))
            FROM jsonb_each(_item -> 'assets') AS one
        ), '{}'),
        'links', CASE WHEN _before IS NULL THEN '[]'::jsonb ELSE jsonb_build_array(jsonb_build_object(
            'rel', 'predecessor-version', 'type', 'application/geo+json', 'href', format('%s/versions/%s', _place, _before)
        )) END
    );
END
$$;
