-- Updates an asset's execution state from its job. Nothing else changes that state. It runs in the transaction that
-- changes the job: a verdict, a refusal at the claim, or an operator's cancel or retry.
--
-- Only the job that the asset waits for counts: the latest job of the latest request for the current revision. An older
-- job that ends late changes nothing. Locks are always taken in the order job, asset, request.
CREATE OR REPLACE FUNCTION app.follow_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
DECLARE
    began boolean := TG_OP = 'INSERT' OR OLD.completed_at IS NOT NULL AND NEW.completed_at IS NULL;
    completed boolean := NEW.status = 'completed';
    failed boolean := NEW.status IN ('failed', 'cancelled');
    result jsonb := coalesce(NEW.result_data, '{}');
    fraction float8 := (NEW.node_summary ->> 'fraction')::float8;
    error text := left(coalesce(NEW.error_message, NEW.status::text), 2000);
BEGIN
    IF NEW.purpose = 'process' THEN
        UPDATE app.geospatial_assets AS a
        SET processing_status = CASE
                WHEN completed THEN 'completed' WHEN failed THEN 'failed' ELSE 'processing'
            END::app.processing_status,
            -- The first attempt counts: whoever waits for the asset has waited since then.
            processing_started_at = coalesce(a.processing_started_at, CASE WHEN began THEN now() END),
            processing_completed_at = CASE WHEN completed THEN now() END,
            estimated_completion_at = CASE
                WHEN NOT completed AND NOT failed AND NEW.run_number = 1 AND fraction BETWEEN 0.02 AND 0.999
                THEN now() + (now() - NEW.started_at) * ((1 - fraction) / fraction)
            END,
            last_error = CASE WHEN failed THEN error END,
            node_summary = coalesce(NEW.node_summary, CASE WHEN NOT began THEN a.node_summary END),
            current_job_id = NEW.job_id,
            job_count = a.job_count + began::integer,
            workflow_version = NEW.workflow_version,
            served_revision = CASE WHEN completed THEN NEW.asset_revision ELSE a.served_revision END,
            table_name = CASE WHEN completed THEN left(result ->> 'table_name', 63) ELSE a.table_name END,
            blob_path = CASE WHEN completed THEN left(result ->> 'blob_path', 500) ELSE a.blob_path END,
            -- The submitter's metadata belongs to the revision, so it lies among its outputs.
            outputs = CASE
                WHEN NOT completed THEN a.outputs
                WHEN r.metadata IS NULL THEN result - 'dataset_metadata'
                ELSE result || jsonb_build_object('dataset_metadata', r.metadata)
            END,
            warnings = CASE
                WHEN NOT completed THEN a.warnings
                WHEN jsonb_typeof(result -> 'warnings') = 'array' THEN to_jsonb(ARRAY(
                    SELECT coalesce(one #>> '{}', 'null') FROM jsonb_array_elements(result -> 'warnings') AS one
                ))
                ELSE '[]'
            END,
            content_hash = CASE WHEN completed THEN left(result ->> 'source_file_hash', 128) ELSE a.content_hash END,
            source_file_hash = CASE WHEN completed THEN left(result ->> 'source_file_hash', 64) ELSE a.source_file_hash END,
            output_file_hash = CASE WHEN completed THEN left(result ->> 'output_file_hash', 64) ELSE a.output_file_hash END,
            updated_at = now()
        FROM app.platform_requests AS r
        WHERE a.asset_id = NEW.asset_id AND a.revision = NEW.asset_revision
          AND r.request_id = a.last_request_id AND r.request_id = NEW.request_id AND r.job_id = NEW.job_id;

        UPDATE app.platform_requests AS r
        SET status = CASE WHEN completed THEN 'completed' WHEN failed THEN 'failed' ELSE 'processing' END::app.request_status,
            last_error = CASE WHEN failed THEN error END,
            updated_at = now()
        WHERE r.request_id = NEW.request_id AND r.job_id = NEW.job_id AND r.status <> 'superseded'
          AND (TG_OP = 'INSERT' OR OLD.status <> NEW.status);
    ELSIF completed AND NEW.purpose IN ('export', 'withdraw') THEN
        UPDATE app.geospatial_assets AS a
        SET external_revision = CASE WHEN NEW.purpose = 'export' THEN NEW.asset_revision END,
            external_files = CASE WHEN NEW.purpose = 'export' THEN coalesce(result -> 'files', '[]') END,
            external_run_id = NEW.job_id,
            updated_at = now()
        WHERE a.asset_id = NEW.asset_id AND a.adf_run_id = NEW.job_id;
    END IF;
    RETURN NULL;
END
$$;
