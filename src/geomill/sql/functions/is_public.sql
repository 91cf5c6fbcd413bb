-- Whether anybody may see an item, as app.catalogue_item says by the rule of domain/access/visibility.py.
CREATE OR REPLACE FUNCTION catalogue.is_public(_content jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog
AS $$
BEGIN
    RETURN coalesce((_content -> 'properties' -> 'geomill:public')::boolean, false);
END
$$;
