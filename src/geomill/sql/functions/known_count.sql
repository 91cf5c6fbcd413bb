-- Returns how many items match a search, if that is known without reading them, else null. If the caller sees everything
-- and there are very many items, the result is pgstac's estimate. If the search wants no count, it is -1.
CREATE OR REPLACE FUNCTION catalogue.known_count(_search jsonb, _rule text, _everything boolean, _where text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path = pgstac, public
AS $$
DECLARE
    _names text[] := nullif(to_text_array(_search -> 'collections'), '{}');
    _stats record;
    _all bigint;
    _public bigint;
    _strays boolean;
BEGIN
    IF _search ? 'uncounted' THEN
        RETURN -1;
    END IF;
    SELECT coalesce(sum(o.items), 0), coalesce(sum(o.public_items), 0), count(*) FILTER (WHERE o.collection_id IS NULL) > 0
    INTO _all, _public, _strays
    FROM collections AS c LEFT JOIN catalogue.collections AS o ON o.collection_id = c.id
    WHERE _names IS NULL OR c.id = ANY (_names);
    IF NOT _search ?| '{ids,bbox,intersects,datetime,q,filter}' AND NOT _strays THEN
        IF _rule = 'true' THEN
            RETURN _all;
        ELSIF _rule = '(private = ''{"public": true}'')' THEN
            RETURN _public;
        END IF;
    END IF;
    IF _everything AND _all >= context_estimated_count() THEN
        SELECT * INTO _stats FROM where_stats(_where, false, '{"context": "auto", "readonly": true}');
        RETURN coalesce(_stats.total_count, _stats.estimated_count);
    END IF;
    RETURN NULL;
END
$$;
