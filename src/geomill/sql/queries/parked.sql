-- Parked jobs, which wait until an operator releases them.

-- name: page
-- The longest parked first, after the last one of the page before.
SELECT job_id, workflow_id, status::text, asset_id, submitted_by, created_at, parked_at, parked_reason
FROM dagapp.dag_jobs
WHERE parked_at IS NOT NULL
  AND (%(after)s::timestamptz IS NULL OR (parked_at, job_id) > (%(after)s::timestamptz, %(after_id)s::text))
ORDER BY parked_at, job_id
LIMIT %(limit)s;
