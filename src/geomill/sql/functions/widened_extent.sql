-- Returns a collection's extent widened by one item. Without an extent, the result is that of the item.
CREATE OR REPLACE FUNCTION catalogue.widened_extent(
    _extent jsonb, _west float8, _south float8, _east float8, _north float8, _begin timestamptz, _end timestamptz
) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
    SET timezone = 'UTC'
AS $$
DECLARE
    _box jsonb := _extent #> '{spatial,bbox,0}';
    _times jsonb := _extent #> '{temporal,interval,0}';
    _shape text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
BEGIN
    RETURN jsonb_build_object(
        'spatial', jsonb_build_object('bbox', jsonb_build_array(jsonb_build_array(
            least((_box ->> 0)::float8, _west), least((_box ->> 1)::float8, _south),
            greatest((_box ->> 2)::float8, _east), greatest((_box ->> 3)::float8, _north)
        ))),
        'temporal', jsonb_build_object('interval', jsonb_build_array(jsonb_build_array(
            to_char(least((_times ->> 0)::timestamptz, date_trunc('second', _begin)), _shape),
            to_char(greatest((_times ->> 1)::timestamptz, date_trunc('second', _end + interval '0.999999 s')), _shape)
        )))
    );
END
$$;
