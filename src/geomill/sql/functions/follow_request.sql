-- Sets the asset back to pending when a retry gives its request a new job.
CREATE OR REPLACE FUNCTION app.follow_request() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
BEGIN
    UPDATE app.geospatial_assets AS a
    SET processing_status = 'pending', last_error = NULL, node_summary = NULL, processing_completed_at = NULL,
        updated_at = now()
    WHERE a.asset_id = NEW.asset_id AND a.revision = NEW.revision AND a.last_request_id = NEW.request_id;
    RETURN NULL;
END
$$;
