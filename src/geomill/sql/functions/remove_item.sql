-- Takes an item out of the catalogue, and keeps its collection's counts and extents true. Whether it was there.
CREATE OR REPLACE FUNCTION catalogue.remove_item(_name text, _id text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
DECLARE
    _old record;
    _known record;
BEGIN
    IF NOT EXISTS (SELECT FROM items WHERE collection = _name AND id = _id) THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(_name, 11));
    DELETE FROM items WHERE collection = _name AND id = _id
    RETURNING geometry, datetime, end_datetime, private = '{"public": true}' AS open INTO _old;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT o.public_extent, c.content -> 'extent' AS extent INTO _known
    FROM catalogue.collections AS o JOIN collections AS c ON c.id = o.collection_id WHERE o.collection_id = _name;
    IF catalogue.touches_extent(
            _known.extent, st_xmin(_old.geometry), st_ymin(_old.geometry), st_xmax(_old.geometry),
            st_ymax(_old.geometry), _old.datetime, _old.end_datetime)
        OR (_old.open AND catalogue.touches_extent(
            _known.public_extent, st_xmin(_old.geometry), st_ymin(_old.geometry), st_xmax(_old.geometry),
            st_ymax(_old.geometry), _old.datetime, _old.end_datetime))
    THEN
        PERFORM catalogue.measure_collection(_name);
    ELSE
        UPDATE catalogue.collections AS c
        SET items = c.items - 1, public_items = c.public_items - coalesce(_old.open, false)::integer
        WHERE c.collection_id = _name;
    END IF;
    RETURN true;
END
$$;
