-- Whether an item touches the edge of an extent, so that the extent may shrink without it.
CREATE OR REPLACE FUNCTION catalogue.touches_extent(
    _extent jsonb, _west float8, _south float8, _east float8, _north float8, _begin timestamptz, _end timestamptz
) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _box jsonb := _extent #> '{spatial,bbox,0}';
    _times jsonb := _extent #> '{temporal,interval,0}';
BEGIN
    RETURN coalesce(
        _west <= (_box ->> 0)::float8 OR _south <= (_box ->> 1)::float8
        OR _east >= (_box ->> 2)::float8 OR _north >= (_box ->> 3)::float8
        OR date_trunc('second', _begin) <= (_times ->> 0)::timestamptz
        OR date_trunc('second', _end + interval '0.999999 s') >= (_times ->> 1)::timestamptz,
        true
    );
END
$$;
