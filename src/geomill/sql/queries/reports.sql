-- Reports about assets for operators.

-- name: stuck
-- Assets in processing for longer than they should be.
SELECT asset_id, workflow_id, current_job_id AS job_id, processing_started_at,
       extract(epoch FROM now() - processing_started_at)::float8 AS seconds, node_summary ->> 'current_node' AS current_node
FROM app.geospatial_assets
WHERE processing_status = 'processing' AND processing_started_at < now() - make_interval(secs => %(seconds)s)
ORDER BY processing_started_at
LIMIT %(limit)s;

-- name: failed
SELECT asset_id, workflow_id, current_job_id AS job_id, last_error, job_count, updated_at
FROM app.geospatial_assets
WHERE processing_status = 'failed' AND deleted_at IS NULL
ORDER BY updated_at DESC
LIMIT %(limit)s;

-- name: exports
-- Exports and withdrawals that failed and were not repeated, so that the copy outside is not as it was decided. Of the newest
-- failed jobs, ten thousand are read.
WITH failed AS (
    SELECT job_id, asset_id, purpose, error_message, completed_at
    FROM dagapp.dag_jobs
    WHERE status = 'failed'
    ORDER BY created_at DESC
    LIMIT 10000
)
SELECT f.asset_id, a.stac_item_id AS asset_name, f.purpose::text AS purpose, f.job_id, f.error_message AS error, f.completed_at
FROM failed AS f
JOIN app.geospatial_assets AS a ON a.asset_id = f.asset_id AND a.adf_run_id = f.job_id
WHERE f.purpose IN ('export', 'withdraw')
ORDER BY f.completed_at DESC
LIMIT %(limit)s;

-- name: sla
SELECT workflow_id, count(*) AS total,
       avg(seconds)::float8 AS avg_seconds,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50_seconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95_seconds
FROM (
    SELECT workflow_id, extract(epoch FROM processing_completed_at - processing_started_at)::float8 AS seconds
    FROM app.geospatial_assets
    WHERE processing_status = 'completed' AND processing_completed_at > now() - make_interval(secs => %(seconds)s)
      AND processing_started_at IS NOT NULL
) AS done
GROUP BY workflow_id
ORDER BY workflow_id
LIMIT %(limit)s;

-- name: retried
SELECT asset_id, workflow_id, job_count, processing_status, last_error
FROM app.geospatial_assets
WHERE job_count > 1
ORDER BY job_count DESC, asset_id
LIMIT %(limit)s;

-- name: load
SELECT workflow_id,
       count(*) FILTER (WHERE processing_status = 'processing') AS active,
       count(*) FILTER (WHERE processing_status = 'pending') AS waiting
FROM app.geospatial_assets
WHERE processing_status IN ('processing', 'pending') AND deleted_at IS NULL
GROUP BY workflow_id
ORDER BY workflow_id
LIMIT %(limit)s;
