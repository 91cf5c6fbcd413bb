-- Drops the tables of revisions to delete and returns their names. Only the job of the asset's current order can do it.
-- It runs as the owner, because the tables belong to the role that made them, not to the worker.
CREATE OR REPLACE FUNCTION app.drop_revision_tables(_asset_id text, _job_id text) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog
AS $$
DECLARE
    _asset record;
    _name text;
    _dropped text[] := '{}';
BEGIN
    SELECT a.table_stem, a.data_deleted_through INTO _asset
    FROM app.geospatial_assets AS a WHERE a.asset_id = _asset_id AND a.delete_run_id = _job_id
    FOR SHARE;
    FOR _name IN
        SELECT t.tablename
        FROM pg_tables AS t
        CROSS JOIN LATERAL regexp_match(
            substr(t.tablename, length(_asset.table_stem) + 1), '^_r([0-9]{1,9})(_points|_lines|_areas)?$'
        ) AS m
        WHERE t.schemaname = 'geo' AND starts_with(t.tablename, _asset.table_stem)
          AND m[1]::integer BETWEEN 1 AND _asset.data_deleted_through
        ORDER BY t.tablename
    LOOP
        EXECUTE format('DROP TABLE geo.%I', _name);
        _dropped := _dropped || _name;
    END LOOP;
    RETURN _dropped;
END
$$;
