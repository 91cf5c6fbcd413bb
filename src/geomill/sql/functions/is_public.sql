-- Whether everybody may see an item. app.catalogue_item writes the flag, by the rule of domain/access/visibility.py.
CREATE OR REPLACE FUNCTION catalogue.is_public(_content jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN coalesce((_content -> 'properties' -> 'geomill:public')::boolean, false);
END
$$;
