-- Puts many items at once: those of the table `incoming (content jsonb, platform_id text)`, of any collections, which are
-- made if they are not there. How many there were.
CREATE OR REPLACE FUNCTION catalogue.put_items(_collections jsonb) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pgstac, public, pg_temp
AS $$
DECLARE
    _group record;
    _count integer := 0;
    _more integer;
BEGIN
    CREATE TEMPORARY TABLE prepared ON COMMIT DROP AS
    SELECT content ->> 'id' AS id, stac_geom(content) AS geometry, content ->> 'collection' AS collection,
           lower(dates) AS datetime, upper(dates) AS end_datetime,
           content - '{id,geometry,collection,type}'::text[] AS content, platform_id
    FROM incoming, stac_daterange(content -> 'properties') AS dates;

    -- In one order, so that two of these do not wait for each other.
    FOR _group IN
        SELECT collection, min(platform_id) AS platform_id,
               tstzrange(min(datetime), max(datetime), '[]') AS begins,
               tstzrange(min(end_datetime), max(end_datetime), '[]') AS ends
        FROM prepared GROUP BY collection ORDER BY collection
    LOOP
        PERFORM catalogue.reserve_collection(
            _group.collection, _collections -> _group.collection, _group.platform_id, _group.begins, _group.ends
        );
        DELETE FROM items AS i USING prepared AS p
        WHERE i.collection = _group.collection AND p.collection = i.collection AND p.id = i.id;
        INSERT INTO items (id, geometry, collection, datetime, end_datetime, content)
        SELECT p.id, p.geometry, p.collection, p.datetime, p.end_datetime, p.content
        FROM prepared AS p WHERE p.collection = _group.collection;
        GET DIAGNOSTICS _more = ROW_COUNT;
        _count := _count + _more;
        PERFORM catalogue.measure_collection(_group.collection);
    END LOOP;
    DROP TABLE prepared;
    RETURN _count;
END
$$;
