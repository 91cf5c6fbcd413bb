-- Whether outputs name files or tables of a revision. After a rollback the outputs of a later revision do.
CREATE OR REPLACE FUNCTION app.mentions_revision(_outputs jsonb, _blob_stem text, _table_stem text, _revision integer)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog
AS $$
    SELECT coalesce(
        strpos(_outputs::text, format('%s/_r%s/', _blob_stem, _revision)) > 0
            OR _outputs::text ~ format('%s_r%s([^0-9]|$)', _table_stem, _revision),
        false)
$$;
