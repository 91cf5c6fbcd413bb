-- Lists, counts and searches of jobs. A statement is a source, which reads a bounded number of rows through one index, and
-- a question about them: `WITH examined AS (source), judged AS (judgement) question`. A filter that the source's index does
-- not serve is applied to the rows that were read, so a question costs at most `examined` rows of each line.

-- columns: listed of dagapp.dag_jobs without input_params, result_data, node_summary

-- name: newest
-- One line: the newest jobs of one asset, correlation id, submitter or workflow, or of all.
SELECT {columns of listed}, '' AS line
FROM dagapp.dag_jobs
WHERE (%(first_asset)s::text IS NULL OR asset_id = %(first_asset)s)
  AND (%(first_correlation)s::text IS NULL OR correlation_id = %(first_correlation)s)
  AND (%(first_submitter)s::text IS NULL OR submitted_by = %(first_submitter)s)
  AND (%(first_workflow)s::text IS NULL OR workflow_id = %(first_workflow)s)
  AND (%(created_from)s::timestamptz IS NULL OR created_at >= %(created_from)s)
  AND (%(created_to)s::timestamptz IS NULL OR created_at < %(created_to)s)
  AND (%(before)s::timestamptz IS NULL OR (created_at, job_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY created_at DESC, job_id DESC
LIMIT %(examined)s

-- name: newest_parked
-- One line: parked jobs. There are few. OFFSET keeps the planner from reading all jobs in order instead.
SELECT {columns of listed}, '' AS line
FROM (
    SELECT {columns of listed}
    FROM dagapp.dag_jobs
    WHERE parked_at IS NOT NULL
      AND (%(created_from)s::timestamptz IS NULL OR created_at >= %(created_from)s)
      AND (%(created_to)s::timestamptz IS NULL OR created_at < %(created_to)s)
      AND (%(before)s::timestamptz IS NULL OR (created_at, job_id) < (%(before)s::timestamptz, %(before_id)s::text))
    OFFSET 0
) AS parked
ORDER BY created_at DESC, job_id DESC
LIMIT %(examined)s

-- name: newest_of_each_status
-- A line for each status, of one workflow or of all.
SELECT {columns of listed as j}, j.status::text AS line
FROM unnest(%(first_statuses)s::dagapp.job_status[]) AS s (status)
CROSS JOIN LATERAL (
    SELECT {columns of listed}
    FROM dagapp.dag_jobs
    WHERE status = s.status
      AND (%(first_workflow)s::text IS NULL OR workflow_id = %(first_workflow)s)
      AND (%(created_from)s::timestamptz IS NULL OR created_at >= %(created_from)s)
      AND (%(created_to)s::timestamptz IS NULL OR created_at < %(created_to)s)
      AND (%(before)s::timestamptz IS NULL OR (created_at, job_id) < (%(before)s::timestamptz, %(before_id)s::text))
    ORDER BY created_at DESC, job_id DESC
    LIMIT %(examined)s
) AS j

-- name: judgement
-- Whether each row that was read passes the filters. The text of an error is compared as it is: it has no wildcards.
SELECT {columns of listed}, line, (
    (%(asset_id)s::text IS NULL OR asset_id = %(asset_id)s)
    AND (%(correlation_id)s::text IS NULL OR correlation_id = %(correlation_id)s)
    AND (%(submitted_by)s::text IS NULL OR submitted_by = %(submitted_by)s)
    AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
    AND (%(statuses)s::dagapp.job_status[] IS NULL OR status = ANY (%(statuses)s::dagapp.job_status[]))
    AND (%(parked)s::boolean IS NULL OR (parked_at IS NOT NULL) = %(parked)s)
    AND (%(paused)s::boolean IS NULL OR (paused_at IS NOT NULL AND status IN ('pending', 'running')) = %(paused)s)
    AND (%(error)s::text IS NULL OR strpos(lower(error_message), lower(%(error)s)) > 0)
) AS matches
FROM examined

-- name: page
SELECT {columns of listed} FROM judged WHERE matches ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s;

-- name: edges
-- The oldest row that was read of each line, and how many were.
SELECT DISTINCT ON (line) line, created_at, job_id, count(*) OVER (PARTITION BY line) AS examined
FROM judged
ORDER BY line, created_at, job_id;

-- name: counts
SELECT status::text AS status, line, count(*) FILTER (WHERE matches) AS jobs, count(*) AS examined
FROM judged
GROUP BY status, line;

-- name: histogram
-- Jobs by part of the time, workflow and status, how many were read of each line, and the oldest of them.
SELECT width_bucket(extract(epoch FROM created_at), %(from_epoch)s::float8, %(to_epoch)s::float8, %(parts)s::integer) - 1 AS part,
       workflow_id, status::text AS status, line, count(*) FILTER (WHERE matches) AS jobs, count(*) AS examined,
       min(created_at) AS oldest
FROM judged
GROUP BY part, workflow_id, status, line;

-- name: of_ids
SELECT {columns of listed} FROM dagapp.dag_jobs WHERE job_id = ANY (%(job_ids)s::text[]) ORDER BY created_at, job_id;

-- name: waiting
-- Submissions that no orchestrator has claimed, in the order of their ids, which are ordered by time.
SELECT q.queue_name AS line, q.message_id, q.body, q.priority, q.enqueued_at
FROM unnest(%(queue_names)s::text[]) AS name (queue_name)
CROSS JOIN LATERAL (
    SELECT queue_name, message_id, body, priority, enqueued_at
    FROM dagapp.dag_queue
    WHERE queue_name = name.queue_name
      AND (%(before_id)s::text IS NULL OR message_id < %(before_id)s)
    ORDER BY message_id DESC
    LIMIT %(examined)s
) AS q

-- name: waiting_judgement
SELECT line, message_id, body, enqueued_at, (
    (%(asset_id)s::text IS NULL OR body ->> 'asset_id' = %(asset_id)s)
    AND (%(correlation_id)s::text IS NULL OR body ->> 'correlation_id' = %(correlation_id)s)
    AND (%(submitted_by)s::text IS NULL OR body ->> 'submitted_by' = %(submitted_by)s)
    AND (%(workflow_id)s::text IS NULL OR body ->> 'workflow_id' = %(workflow_id)s)
    AND (%(created_from)s::timestamptz IS NULL OR enqueued_at >= %(created_from)s)
    AND (%(created_to)s::timestamptz IS NULL OR enqueued_at < %(created_to)s)
) AS matches
FROM examined

-- name: waiting_page
SELECT message_id, body, enqueued_at FROM judged WHERE matches ORDER BY message_id DESC LIMIT %(limit)s;

-- name: waiting_edges
SELECT DISTINCT ON (line) line, message_id, count(*) OVER (PARTITION BY line) AS examined
FROM judged
ORDER BY line, message_id;

-- name: waiting_counts
SELECT line, count(*) FILTER (WHERE matches) AS jobs, count(*) AS examined FROM judged GROUP BY line;
