-- Measures extents and counts of a collection from its items, after an item has left the edge of an extent. The caller has
-- locked the collection. The content of items is not read: a column of its own says whether an item is public.
CREATE OR REPLACE FUNCTION catalogue.measure_collection(_name text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
DECLARE
    _all record;
    _open record;
BEGIN
    SELECT count(*) AS items, st_extent(geometry) AS box, min(datetime) AS begins, max(end_datetime) AS ends
    INTO _all FROM items WHERE collection = _name;
    SELECT count(*) AS items, st_extent(geometry) AS box, min(datetime) AS begins, max(end_datetime) AS ends
    INTO _open FROM items WHERE collection = _name AND private = '{"public": true}';

    UPDATE catalogue.collections AS c
    SET items = _all.items, public_items = _open.items,
        public_extent = CASE WHEN _open.items > 0 THEN catalogue.widened_extent(
            NULL, st_xmin(_open.box), st_ymin(_open.box), st_xmax(_open.box), st_ymax(_open.box), _open.begins, _open.ends
        ) END
    WHERE c.collection_id = _name;
    IF _all.items > 0 THEN
        UPDATE collections AS c
        SET content = jsonb_set(c.content, '{extent}', catalogue.widened_extent(
            NULL, st_xmin(_all.box), st_ymin(_all.box), st_xmax(_all.box), st_ymax(_all.box), _all.begins, _all.ends
        ))
        WHERE c.id = _name;
    END IF;
END
$$;
