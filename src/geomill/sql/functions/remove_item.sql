-- Takes an item out of the catalogue, and keeps its collection's extents true. Whether it was there.
CREATE OR REPLACE FUNCTION catalogue.remove_item(_name text, _id text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pgstac, public
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM items WHERE collection = _name AND id = _id) THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(_name, 11));
    DELETE FROM items WHERE collection = _name AND id = _id;
    PERFORM catalogue.measure_collection(_name);
    RETURN true;
END
$$;
