-- A caller's own condition, never evaluated on an item that the caller may not see: it might fail on it, and the failure
-- would tell that it is there. AND promises no order; CASE does.
CREATE OR REPLACE FUNCTION catalogue.guarded(_rule text, _wanted text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN CASE WHEN _rule = 'true' THEN _wanted ELSE format('CASE WHEN %s THEN %s ELSE false END', _rule, _wanted) END;
END
$$;
