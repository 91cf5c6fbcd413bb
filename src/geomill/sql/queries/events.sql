-- The history of jobs: only ever added to.

-- name: insert
INSERT INTO dagapp.dag_job_events (job_id, node_id, item_index, event_type, event_status, event_data)
SELECT e.job_id, e.node_id, e.item_index, e.type, e.status, coalesce(e.data, '{}'::jsonb)
FROM json_to_recordset(%(events)s::json) AS e (
    job_id text, node_id text, item_index integer, type dagapp.event_type, status dagapp.event_status, data jsonb
);

-- name: of_job
SELECT {columns of dagapp.dag_job_events}
FROM dagapp.dag_job_events
WHERE job_id = %(job_id)s AND event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s;

-- name: latest
SELECT coalesce(max(event_id), 0) AS latest FROM dagapp.dag_job_events WHERE job_id = %(job_id)s;
