-- Does what pgstac's search does, among the items that the caller may see (`item_rule`), and counts them. `_after` is the
-- collection and id of the item after which the page begins or, with `_back`, before which it ends. The result is null
-- if the caller may not see that item.
--
-- With a condition, pgstac's own search would read each item twice: for the count and for the page. This one reads it
-- once. Without a condition it reads only the page, because the collections have the count.
--
-- With `repaired` in the search, footprints are repaired while they are compared. Geomill stores only valid ones; others
-- come from pgstac's own tools, and make the plain comparison fail.
CREATE OR REPLACE FUNCTION catalogue.search_items(
    _search jsonb, _everything boolean, _platform text, _asset text, _after text[], _back boolean
) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _names text[] := nullif(to_text_array(_search -> 'collections'), '{}');
    _limit integer := search_limit(_search);
    _rule text := catalogue.item_rule(_everything, _platform, _asset);
    _order text := sort_sqlorderby(_search, _back, '{collection,id}', _names);
    _filter text := cql2_query(_search -> 'filter', NULL, _names);
    _where text := format('%s AND %s', _rule, stac_search_to_where(_search - 'filter'));
    _later text := 'true';
    _anchor record;
    _matched bigint;
    _page jsonb;
    _more boolean;
BEGIN
    IF _search ? 'repaired' THEN
        _where := replace(_where, 'st_intersects(geometry,', 'st_intersects(catalogue.sound_place(geometry),');
        _filter := replace(_filter, 'st_intersects(geometry,', 'st_intersects(catalogue.sound_place(geometry),');
    END IF;
    IF _filter IS NOT NULL THEN
        _where := format('%s AND %s', _where, catalogue.guarded(_rule, _filter));
    END IF;
    IF _after IS NOT NULL THEN
        EXECUTE format('SELECT i AS item FROM items AS i WHERE collection = $1 AND id = $2 AND %s', _rule)
        INTO _anchor USING _after[1], _after[2];
        IF _anchor.item IS NULL THEN
            RETURN NULL;
        END IF;
        _later := get_token_filter(_search -> 'sortby', _anchor.item, _back, false, _names);
    END IF;
    _matched := catalogue.known_count(_search, _rule, _everything, _where);
    IF _matched IS NULL THEN
        EXECUTE format(
            $query$
                WITH found AS MATERIALIZED (
                    SELECT collection, id, row_number() OVER (ORDER BY %s) AS place, %s AS later FROM items WHERE %s
                ), page AS (
                    SELECT * FROM found WHERE later ORDER BY place LIMIT %s
                )
                SELECT (SELECT count(*) FROM found), jsonb_agg(catalogue.item_document(i.id, i.collection, i.geometry, i.content) ORDER BY p.place)
                FROM page AS p JOIN items AS i ON i.collection = p.collection AND i.id = p.id
            $query$, _order, _later, _where, _limit + 1
        ) INTO _matched, _page;
    ELSE
        EXECUTE format(
            $query$
                SELECT jsonb_agg(catalogue.item_document(i.id, i.collection, i.geometry, i.content))
                FROM (SELECT * FROM items WHERE %s AND %s ORDER BY %s LIMIT %s) AS i
            $query$,
            _where, CASE WHEN _search ? 'sortby' THEN catalogue.guarded(_rule, _later) ELSE _later END, _order, _limit + 1
        ) INTO _page;
    END IF;
    _page := coalesce(_page, '[]');
    _more := jsonb_array_length(_page) > _limit;
    _page := CASE WHEN _more THEN _page - -1 ELSE _page END;
    _page := CASE WHEN _back THEN coalesce(flip_jsonb_array(_page), '[]') ELSE _page END;
    RETURN jsonb_build_object(
        'features', _page,
        'numberMatched', nullif(_matched, -1),
        'next', CASE WHEN _more OR _back THEN page_token(_page -> -1 ->> 'collection', _page -> -1 ->> 'id') END,
        'prev', CASE WHEN CASE WHEN _back THEN _more ELSE _after IS NOT NULL END
                     THEN page_token(_page -> 0 ->> 'collection', _page -> 0 ->> 'id') END
    );
END
$$;
