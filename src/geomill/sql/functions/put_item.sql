-- Puts one item into the catalogue, new or in place of what it was, and keeps its collection's counts and extents true:
-- they grow with it, and are measured anew only if it leaves the edge of one.
--
-- Not through pgstac's staging tables: they make a temporary table for each item. Nothing is left out of the content,
-- because our collections have no item_assets from which pgstac could put it back. `private` says whether it is public.
CREATE OR REPLACE FUNCTION catalogue.put_item(_item jsonb, _collection jsonb, _platform text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
DECLARE
    _name text := _item ->> 'collection';
    _place geometry := catalogue.sound_place(stac_geom(_item));
    _begin timestamptz := stac_datetime(_item);
    _end timestamptz := stac_end_datetime(_item);
    _open boolean := catalogue.is_public(_item);
    _flag jsonb := jsonb_build_object('public', catalogue.is_public(_item));
    _partition text;
    _old record;
    _moved boolean;
    _known record;
BEGIN
    _partition := catalogue.reserve_collection(
        _name, _collection, _platform, tstzrange(_begin, _begin, '[]'), tstzrange(_end, _end, '[]')
    );
    EXECUTE format('SELECT geometry, datetime, end_datetime, private FROM %I WHERE id = $1', _partition)
    INTO _old USING _item ->> 'id';
    EXECUTE format(
        'INSERT INTO %I (id, geometry, collection, datetime, end_datetime, content, private)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (id) DO UPDATE
         SET geometry = EXCLUDED.geometry, datetime = EXCLUDED.datetime, end_datetime = EXCLUDED.end_datetime,
             content = EXCLUDED.content, private = EXCLUDED.private', _partition
    ) USING _item ->> 'id', _place, _name, _begin, _end, _item - '{id,geometry,collection,type}'::text[], _flag;

    SELECT o.public_extent, o.items, c.content -> 'extent' AS extent INTO _known
    FROM catalogue.collections AS o JOIN collections AS c ON c.id = o.collection_id WHERE o.collection_id = _name;
    IF _old.geometry IS NOT NULL THEN
        _moved := NOT (_old.geometry ~= _place AND _old.datetime = _begin AND _old.end_datetime = _end);
        IF (_moved AND catalogue.touches_extent(
                _known.extent, st_xmin(_old.geometry), st_ymin(_old.geometry), st_xmax(_old.geometry),
                st_ymax(_old.geometry), _old.datetime, _old.end_datetime))
            OR (_old.private = '{"public": true}' AND (_moved OR NOT _open) AND catalogue.touches_extent(
                _known.public_extent, st_xmin(_old.geometry), st_ymin(_old.geometry), st_xmax(_old.geometry),
                st_ymax(_old.geometry), _old.datetime, _old.end_datetime))
        THEN
            PERFORM catalogue.measure_collection(_name);
            RETURN;
        END IF;
    END IF;
    UPDATE catalogue.collections AS c
    SET items = c.items + (_old.geometry IS NULL)::integer,
        public_items = c.public_items + _open::integer - coalesce(_old.private = '{"public": true}', false)::integer,
        public_extent = CASE WHEN _open THEN catalogue.widened_extent(
            c.public_extent, st_xmin(_place), st_ymin(_place), st_xmax(_place), st_ymax(_place), _begin, _end
        ) ELSE c.public_extent END
    WHERE c.collection_id = _name;
    IF _moved IS NOT FALSE THEN
        UPDATE collections AS c
        SET content = jsonb_set(c.content, '{extent}', catalogue.widened_extent(
            CASE WHEN _known.items > 0 THEN _known.extent END,
            st_xmin(_place), st_ymin(_place), st_xmax(_place), st_ymax(_place), _begin, _end
        ))
        WHERE c.id = _name;
    END IF;
END
$$;
