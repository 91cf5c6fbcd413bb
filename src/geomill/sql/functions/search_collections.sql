-- Does what pgstac's collection_search does, among the collections that the caller may see.
CREATE OR REPLACE FUNCTION catalogue.search_collections(_search jsonb, _everything boolean, _platform text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _limit integer := search_limit(_search);
    _offset integer := search_offset(_search);
    _found jsonb;
BEGIN
    EXECUTE format(
        $query$
            WITH found AS MATERIALIZED (
                SELECT * FROM catalogue.visible_collections($1, $2) WHERE %s
            ), page AS (
                SELECT jsonb_fields(document, %L) AS document FROM found ORDER BY %s LIMIT %L OFFSET %L
            )
            SELECT jsonb_build_object(
                'numberMatched', (SELECT count(*) FROM found),
                'collections', (SELECT coalesce(jsonb_agg(document), '[]') FROM page)
            )
        $query$,
        stac_search_to_where(_search), coalesce(_search -> 'fields', '{}'), sort_sqlorderby(_search, false, '{id}'),
        _limit, _offset
    ) INTO _found USING _everything, _platform;
    RETURN _found || jsonb_build_object('limit', _limit, 'offset', _offset);
END
$$;
