-- Puts one item into the catalogue, new or in place of what it was, and keeps its collection's extents true.
--
-- Not through pgstac's staging tables: they make a temporary table for each item, and take ten times as long. Nothing is
-- left out of the content, because our collections have no item_assets from which pgstac could put it back.
CREATE OR REPLACE FUNCTION catalogue.put_item(_item jsonb, _collection jsonb, _platform text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
DECLARE
    _name text := _item ->> 'collection';
    _place geometry := stac_geom(_item);
    _begin timestamptz := stac_datetime(_item);
    _end timestamptz := stac_end_datetime(_item);
    _content jsonb := _item - '{id,geometry,collection,type}'::text[];
    _open boolean := catalogue.is_public(_item);
    _count integer;
BEGIN
    PERFORM catalogue.reserve_collection(
        _name, _collection, _platform, tstzrange(_begin, _begin, '[]'), tstzrange(_end, _end, '[]')
    );
    UPDATE items AS i
    SET geometry = _place, datetime = _begin, end_datetime = _end, content = _content
    WHERE i.collection = _name AND i.id = _item ->> 'id';
    IF FOUND THEN
        PERFORM catalogue.measure_collection(_name);
        RETURN;
    END IF;

    INSERT INTO items (id, geometry, collection, datetime, end_datetime, content)
    VALUES (_item ->> 'id', _place, _name, _begin, _end, _content);
    UPDATE catalogue.collections AS c
    SET items = c.items + 1, public_items = c.public_items + _open::integer,
        public_extent = CASE WHEN _open THEN catalogue.widened_extent(
            c.public_extent, st_xmin(_place), st_ymin(_place), st_xmax(_place), st_ymax(_place), _begin, _end
        ) ELSE c.public_extent END
    WHERE c.collection_id = _name
    RETURNING c.items INTO _count;
    UPDATE collections AS c
    SET content = jsonb_set(c.content, '{extent}', catalogue.widened_extent(
        CASE WHEN _count > 1 THEN c.content -> 'extent' END,
        st_xmin(_place), st_ymin(_place), st_xmax(_place), st_ymax(_place), _begin, _end
    ))
    WHERE c.id = _name;
END
$$;
