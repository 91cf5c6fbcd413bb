-- Returns a caller's condition so that it is never evaluated on an item that the caller may not see. It might fail on
-- such an item, which would reveal that the item exists. AND guarantees no order of evaluation; CASE does.
CREATE OR REPLACE FUNCTION catalogue.guarded(_rule text, _wanted text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN CASE WHEN _rule = 'true' THEN _wanted ELSE format('CASE WHEN %s THEN %s ELSE false END', _rule, _wanted) END;
END
$$;
