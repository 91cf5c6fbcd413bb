-- Of a layer that was split by its kinds of geometry: the features of the tables beside the main one, as assets of its item.
CREATE OR REPLACE FUNCTION app.layer_assets(_asset_id text, _table text, _outputs jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN (
        SELECT coalesce(jsonb_object_agg('features_' || p.part, jsonb_build_object(
            'href', format('/vector/collections/%s.%s/items', _asset_id, p.part), 'type', 'application/geo+json',
            'title', format('OGC API Features: %s', p.part), 'roles', '["data"]'::jsonb
        )), '{}')
        FROM jsonb_array_elements(
            CASE WHEN jsonb_typeof(_outputs -> 'tables') = 'array' THEN _outputs -> 'tables' ELSE '[]' END
        ) AS one
        CROSS JOIN LATERAL (
            SELECT CASE WHEN starts_with(one ->> 'table_name', _table || '_')
                        THEN substr(one ->> 'table_name', length(_table) + 2) ELSE one ->> 'table_name' END AS part
        ) AS p
        WHERE one ->> 'table_name' <> _table
    );
END
$$;
