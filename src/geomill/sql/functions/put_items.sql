-- Adds or replaces many items at once: those of the table `incoming (content jsonb, platform_id text)`, of any
-- collections. Missing collections are created. Of two items with the same id the last one counts. Returns how many items
-- were written.
CREATE OR REPLACE FUNCTION catalogue.put_items(_collections jsonb) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pgstac, public, pg_temp
    SET timezone = 'UTC'
AS $$
DECLARE
    _group record;
    _now tstzrange := tstzrange(now(), now(), '[]');
    _partition text;
    _count integer := 0;
    _more integer;
BEGIN
    -- All writers take collections in this order, so that two of them do not wait for each other.
    FOR _group IN
        SELECT content ->> 'collection' AS name, min(platform_id) AS platform_id
        FROM incoming GROUP BY 1 ORDER BY 1
    LOOP
        _partition := catalogue.reserve_collection(
            _group.name, _collections -> _group.name, _group.platform_id, _now, _now
        );
        EXECUTE format(
            $insert$
                INSERT INTO %I AS i (id, geometry, collection, datetime, end_datetime, content, private)
                SELECT DISTINCT ON (r.id) r.id, r.geometry, $1, r.datetime, r.end_datetime, r.content, r.private
                FROM incoming AS n CROSS JOIN LATERAL catalogue.item_row(n.content) AS r
                WHERE n.content ->> 'collection' = $1
                ORDER BY r.id, n.ctid DESC
                ON CONFLICT (id) DO UPDATE
                SET geometry = EXCLUDED.geometry, datetime = EXCLUDED.datetime, end_datetime = EXCLUDED.end_datetime,
                    content = EXCLUDED.content, private = EXCLUDED.private
            $insert$, _partition
        ) USING _group.name;
        GET DIAGNOSTICS _more = ROW_COUNT;
        _count := _count + _more;
        PERFORM catalogue.measure_collection(_group.name);
    END LOOP;
    RETURN _count;
END
$$;
