-- Makes the items beside a main one be these, of a collection that is there: puts them in, and takes the others out. Their
-- ids begin with the main one's and a dot, which no main id has.
CREATE OR REPLACE FUNCTION catalogue.put_side_items(_name text, _main text, _items jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pgstac, public, pg_temp
AS $$
DECLARE
    _gone text[];
BEGIN
    IF EXISTS (SELECT FROM jsonb_array_elements(_items) AS one WHERE one ->> 'id' ~ '^[^/:[:space:]]+$' IS NOT true) THEN
        RAISE EXCEPTION 'an item of stac_items has no id, or one with a slash, a colon or a space in it';
    END IF;
    IF (SELECT count(*) <> count(DISTINCT one ->> 'id') FROM jsonb_array_elements(_items) AS one) THEN
        RAISE EXCEPTION 'two items of stac_items have the same id';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(_name, 11));
    -- EXCEPT, because nothing is known of how many there are, and a loop within a loop would take minutes for 10,000.
    _gone := ARRAY(
        SELECT i.id FROM items AS i WHERE i.collection = _name AND starts_with(i.id, _main || '.')
        EXCEPT SELECT one ->> 'id' FROM jsonb_array_elements(_items) AS one
    );
    DELETE FROM items AS i WHERE i.collection = _name AND i.id = ANY (_gone);
    IF jsonb_array_length(_items) > 0 THEN
        CREATE TEMPORARY TABLE IF NOT EXISTS incoming (content jsonb NOT NULL, platform_id text) ON COMMIT DROP;
        DELETE FROM incoming;
        INSERT INTO incoming (content) SELECT one FROM jsonb_array_elements(_items) AS one;
        PERFORM catalogue.put_items('{}');
        DELETE FROM incoming;
    ELSIF cardinality(_gone) > 0 THEN
        PERFORM catalogue.measure_collection(_name);
    END IF;
END
$$;
