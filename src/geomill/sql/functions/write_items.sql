-- Writes items of one collection: adds or replaces `_items`, removes the items `_removed`, and removes every other side
-- item of the main items `_series`. Side items have the id of their main item, a dot, and a name of their own; a main id
-- has no dot. Returns how many items were added or replaced.
--
-- Counts and extents of the collection stay right. They grow with the new items. All items are measured again only if an
-- item at the edge of an extent leaves a place that the new items do not cover.
--
-- pgstac's own staging tables are not used: they make a temporary table for each item.
CREATE OR REPLACE FUNCTION catalogue.write_items(
    _name text, _collection jsonb, _platform text, _items jsonb[], _removed text[], _series text[]
) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pgstac, public
    SET timezone = 'UTC'
AS $$
DECLARE
    _now tstzrange := tstzrange(now(), now(), '[]');
    _table text := 'items';
    _measures text := $measures$
        count(*) AS items, st_extent(geometry) AS box, min(datetime) AS begins, max(end_datetime) AS ends,
        count(*) FILTER (WHERE public) AS public_items, st_extent(geometry) FILTER (WHERE public) AS public_box,
        min(datetime) FILTER (WHERE public) AS public_begins, max(end_datetime) FILTER (WHERE public) AS public_ends
    $measures$;
    _known record;
    _old record;
    _new record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(_name, 11));
    IF cardinality(_items) > 0 THEN
        _table := catalogue.reserve_collection(_name, _collection, _platform, _now, _now);
    END IF;
    SELECT o.items, o.public_extent, c.content -> 'extent' AS extent INTO _known
    FROM catalogue.collections AS o JOIN collections AS c ON c.id = o.collection_id WHERE o.collection_id = _name;

    EXECUTE format(
        $delete$
            WITH old AS (
                DELETE FROM %1$I AS i
                WHERE i.collection = $1 AND i.id = ANY ($2 || ARRAY(SELECT n ->> 'id' FROM unnest($3) AS n) || ARRAY(
                    SELECT s.id FROM %1$I AS s
                    WHERE cardinality($4) > 0 AND s.collection = $1 AND strpos(s.id, '.') > 0
                      AND split_part(s.id, '.', 1) = ANY ($4)
                ))
                RETURNING i.geometry, i.datetime, i.end_datetime, i.private = '{"public": true}' AS public
            )
            SELECT %2$s FROM old
        $delete$, _table, _measures
    ) INTO _old USING _name, _removed, _items, _series;
    EXECUTE format(
        $insert$
            WITH new AS (
                INSERT INTO %1$I AS i (id, geometry, collection, datetime, end_datetime, content, private)
                SELECT DISTINCT ON (r.id) r.id, r.geometry, $1, r.datetime, r.end_datetime, r.content, r.private
                FROM unnest($2) WITH ORDINALITY AS n (item, place) CROSS JOIN LATERAL catalogue.item_row(n.item) AS r
                ORDER BY r.id, n.place DESC
                RETURNING i.geometry, i.datetime, i.end_datetime, i.private = '{"public": true}' AS public
            )
            SELECT %2$s FROM new
        $insert$, _table, _measures
    ) INTO _new USING _name, _items;

    IF catalogue.leaves_edge(_known.extent, _old.box, _old.begins, _old.ends, _new.box, _new.begins, _new.ends)
        OR catalogue.leaves_edge(_known.public_extent, _old.public_box, _old.public_begins, _old.public_ends,
                                 _new.public_box, _new.public_begins, _new.public_ends)
    THEN
        PERFORM catalogue.measure_collection(_name);
        RETURN _new.items;
    END IF;
    UPDATE catalogue.collections AS c
    SET items = c.items + _new.items - _old.items,
        public_items = c.public_items + _new.public_items - _old.public_items,
        public_extent = CASE WHEN _new.public_items > 0 THEN catalogue.widened_extent(
            c.public_extent, st_xmin(_new.public_box), st_ymin(_new.public_box), st_xmax(_new.public_box),
            st_ymax(_new.public_box), _new.public_begins, _new.public_ends
        ) ELSE c.public_extent END
    WHERE c.collection_id = _name;
    IF _new.items > 0 THEN
        UPDATE collections AS c
        SET content = jsonb_set(c.content, '{extent}', widened.extent)
        FROM (
            SELECT catalogue.widened_extent(
                CASE WHEN _known.items > 0 THEN _known.extent END, st_xmin(_new.box), st_ymin(_new.box),
                st_xmax(_new.box), st_ymax(_new.box), _new.begins, _new.ends
            ) AS extent
        ) AS widened
        WHERE c.id = _name AND c.content -> 'extent' IS DISTINCT FROM widened.extent;
    END IF;
    RETURN _new.items;
END
$$;
