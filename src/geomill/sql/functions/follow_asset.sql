-- The catalogue follows the asset, in the transaction that changes it: a job's verdict, a decision, an unpublishing.
--
-- It stops nobody: what cannot be written at once, because somebody holds the collection or the item is not one, is noted,
-- and an orchestrator tries again (engine/maintenance/catalogue.py). Until then the item is shown to nobody. The wait is
-- shorter than PostgreSQL's own for deadlocks, so that of two who wait for each other this one gives way.
CREATE OR REPLACE FUNCTION app.follow_asset() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
    SET lock_timeout = '250ms'
AS $$
BEGIN
    IF to_regclass('pgstac.items') IS NULL THEN
        RETURN NULL;
    END IF;
    BEGIN
        PERFORM app.settle_item(NEW.asset_id);
        DELETE FROM catalogue.pending AS p WHERE p.asset_id = NEW.asset_id;
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO catalogue.pending AS p (asset_id, reason) VALUES (NEW.asset_id, left(SQLERRM, 2000))
        ON CONFLICT (asset_id) DO UPDATE SET reason = EXCLUDED.reason, due_at = now();
    END;
    RETURN NULL;
END
$$;
