-- Drops the tables of a revision that this transaction has recorded as a leftover, and returns their names. It runs as
-- the owner, because the tables belong to the role that made them, not to the orchestrator. Tables that are served or
-- public are never dropped.
CREATE OR REPLACE FUNCTION app.drop_leftover_tables(_asset_id text, _revision integer) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog
AS $$
DECLARE
    _stem text;
    _name text;
    _dropped text[] := '{}';
BEGIN
    SELECT a.table_stem INTO _stem
    FROM app.geospatial_assets AS a
    JOIN app.asset_leftovers AS l ON l.asset_id = a.asset_id AND l.revision = _revision AND l.deleted_at = now()
    WHERE a.asset_id = _asset_id
      AND NOT app.mentions_revision(a.outputs, a.blob_stem, a.table_stem, _revision)
      AND NOT EXISTS (SELECT FROM app.asset_revisions AS r
                      WHERE r.asset_id = a.asset_id AND r.revision = a.public_revision
                        AND app.mentions_revision(r.outputs, a.blob_stem, a.table_stem, _revision))
    FOR SHARE OF a;
    FOR _name IN
        SELECT t.tablename
        FROM pg_tables AS t
        WHERE t.schemaname = 'geo' AND t.tablename IN (
            format('%s_r%s', _stem, _revision), format('%s_r%s_points', _stem, _revision),
            format('%s_r%s_lines', _stem, _revision), format('%s_r%s_areas', _stem, _revision))
        ORDER BY t.tablename
    LOOP
        EXECUTE format('DROP TABLE geo.%I', _name);
        _dropped := _dropped || _name;
    END LOOP;
    RETURN _dropped;
END
$$;
