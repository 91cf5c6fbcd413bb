-- Notes that the catalogue entry of an asset must be written again, in the transaction that changes the asset.
--
-- A change by a job (a trigger made it) leaves the present entry as it is until an orchestrator writes the new one: the
-- job's statement also drives other jobs, so it must not wait for a collection. A change by a person withholds the entry
-- from everybody until it is written. The decision itself writes it, in the same transaction (catalogue/following.py).
CREATE OR REPLACE FUNCTION app.follow_asset() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
DECLARE
    _decided boolean := pg_trigger_depth() = 1;
BEGIN
    INSERT INTO catalogue.pending AS p (asset_id, reason, withheld)
    VALUES (NEW.asset_id, CASE WHEN _decided THEN 'a decision changed the asset' ELSE 'a job has ended' END, _decided)
    ON CONFLICT (asset_id) DO UPDATE
    SET reason = EXCLUDED.reason, withheld = p.withheld OR EXCLUDED.withheld, attempts = 0, due_at = now();
    RETURN NULL;
END
$$;
