-- The history of jobs. Rows are only added.

-- name: of_job
SELECT {columns of dagapp.dag_job_events}
FROM dagapp.dag_job_events
WHERE job_id = %(job_id)s AND event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s;

-- name: latest
SELECT coalesce(max(event_id), 0) AS latest FROM dagapp.dag_job_events WHERE job_id = %(job_id)s;

-- name: newest
SELECT coalesce(max(event_id), 0) AS newest FROM dagapp.dag_job_events;

-- name: after
-- Which jobs something has happened to since an event.
SELECT event_id, job_id, created_at
FROM dagapp.dag_job_events
WHERE event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s;
