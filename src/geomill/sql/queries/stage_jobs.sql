-- Stage jobs: ids for attempts at the same order. The state of an attempt is in dag_jobs.

-- name: serialise
-- Lets submissions of one stage job run one after the other, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('stage job ' || %(job_id)s, 0));

-- name: attempts
-- Attempts, the latest first. One statement, so that an attempt on its way from the queue to its row is found.
SELECT {columns of dagapp.dag_stage_jobs as s}, j.status, j.error_message, j.started_at, j.completed_at, j.paused_at,
       EXISTS (
           SELECT FROM dagapp.dag_queue AS q
           WHERE q.queue_name IN (%(queue_name)s::text, %(queue_name)s::text || '.unknown') AND q.message_id = s.run_id
       ) AS waiting
FROM dagapp.dag_stage_jobs AS s
LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = s.run_id
WHERE s.job_id = %(job_id)s
ORDER BY s.attempt DESC
LIMIT %(limit)s;

-- columns: new_attempt of dagapp.dag_stage_jobs without submitted_at

-- name: add
INSERT INTO dagapp.dag_stage_jobs ({columns of new_attempt})
VALUES ({values of new_attempt})
RETURNING {columns of dagapp.dag_stage_jobs};

-- name: latest_run
SELECT run_id FROM dagapp.dag_stage_jobs WHERE job_id = %(job_id)s ORDER BY attempt DESC LIMIT 1;

-- name: is_attempt
SELECT EXISTS (SELECT FROM dagapp.dag_stage_jobs WHERE run_id = %(run_id)s) AS is_attempt;

-- name: superseded
-- Whether a later attempt has replaced this one.
SELECT EXISTS (
    SELECT
    FROM dagapp.dag_stage_jobs AS s
    JOIN dagapp.dag_stage_jobs AS later ON later.job_id = s.job_id AND later.attempt > s.attempt
    WHERE s.run_id = %(run_id)s
) AS superseded;

-- name: page
-- The latest attempt of each job, the newest first, after the last one of the page before.
SELECT {columns of dagapp.dag_stage_jobs as s}, j.status, j.error_message, j.started_at, j.completed_at, j.paused_at,
       EXISTS (
           SELECT FROM dagapp.dag_queue AS q
           WHERE q.queue_name IN (%(queue_name)s::text, %(queue_name)s::text || '.unknown') AND q.message_id = s.run_id
       ) AS waiting
FROM dagapp.dag_stage_jobs AS s
LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = s.run_id
WHERE NOT EXISTS (
          SELECT FROM dagapp.dag_stage_jobs AS later WHERE later.job_id = s.job_id AND later.attempt > s.attempt)
  AND (%(job_type)s::text IS NULL OR s.job_type = %(job_type)s)
  AND (%(statuses)s::text[] IS NULL OR coalesce(j.status::text, 'queued') = ANY(%(statuses)s::text[]))
  AND (%(before)s::timestamptz IS NULL
       OR (s.submitted_at, s.job_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY s.submitted_at DESC, s.job_id DESC
LIMIT %(limit)s;

-- name: tasks
-- Tasks of a stage that were sent, in their order. A task without a row waits or has just begun.
SELECT item.item_index, coalesce(n.status, 'dispatched') AS status, coalesce(n.attempt, 1) AS attempt,
       coalesce(n.retry_count, 0) AS retry_count, n.error_message, n.started_at, n.completed_at, r.output
FROM dagapp.dag_node_states AS f
CROSS JOIN LATERAL generate_series(%(after)s + 1, least(%(after)s + %(limit)s, f.items_sent - 1)) AS item (item_index)
LEFT JOIN dagapp.dag_node_states AS n
    ON n.job_id = f.job_id AND n.node_id = f.node_id AND n.item_index = item.item_index
LEFT JOIN dagapp.dag_task_results AS r ON n.status = 'completed' AND r.task_id = n.task_id
WHERE f.job_id = %(run_id)s AND f.node_id = %(node_id)s AND f.item_index = -1
ORDER BY item.item_index;
