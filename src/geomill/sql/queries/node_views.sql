-- Nodes and items of fan-outs as operators look at them. All are found by their keys, or by those of their fan-out.

-- name: node
SELECT {columns of dagapp.dag_node_states}
FROM dagapp.dag_node_states
WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index = %(item_index)s;

-- name: sources
-- The nodes whose outputs the templates of another node read.
SELECT {columns of dagapp.dag_node_states}
FROM dagapp.dag_node_states
WHERE job_id = %(job_id)s AND node_id = ANY (%(node_ids)s::text[]) AND item_index = -1;

-- name: message
SELECT body, lease_token IS NOT NULL AS leased, leased_by, leased_until, started_at, progress,
       coalesce(progress_message, '') AS progress_message, delivery_count, enqueued_at, visible_at
FROM dagapp.dag_queue
WHERE queue_name = %(queue_name)s AND message_id = %(task_id)s;

-- name: attempts
SELECT {columns of dagapp.dag_task_results}
FROM dagapp.dag_task_results
WHERE task_id = ANY (%(task_ids)s::text[])
ORDER BY attempt DESC;

-- name: checkpoint
SELECT {columns of dagapp.dag_checkpoints}
FROM dagapp.dag_checkpoints
WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index = %(item_index)s;

-- name: items
-- These items of a fan-out, in the given order. An item without a row was sent and nothing more is known of it, or it has
-- ended and its owner has not taken the report yet, or it was not sent. LIMIT has each item looked up by its keys, where
-- the planner would rather read the whole fan-out or the whole queue.
SELECT i.item_index, coalesce(n.attempt, 1) AS attempt, coalesce(n.retry_count, 0) AS retry_count,
       t.task_id, n.error_message, r.error_code, n.not_before,
       coalesce(n.worker_id, r.worker_id, q.leased_by) AS worker_id, r.handler_version,
       coalesce(n.dispatched_at, q.enqueued_at) AS dispatched_at,
       coalesce(n.started_at, r.started_at, q.started_at) AS started_at, n.completed_at,
       q.progress, coalesce(q.progress_message, '') AS progress_message,
       CASE WHEN n.status <> 'dispatched' THEN n.status::text
            WHEN r.task_id IS NOT NULL THEN r.status::text
            WHEN q.lease_token IS NOT NULL THEN 'running'
            WHEN i.item_index < %(items_sent)s THEN 'dispatched'
            WHEN %(ended)s::boolean THEN 'skipped'
            ELSE 'pending' END AS status
FROM unnest(%(indexes)s::integer[]) WITH ORDINALITY AS i (item_index, place)
LEFT JOIN LATERAL (
    SELECT status, task_id, attempt, retry_count, error_message, not_before, worker_id, dispatched_at, started_at,
           completed_at
    FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index = i.item_index
    LIMIT 1
) AS n ON true
CROSS JOIN LATERAL (
    SELECT coalesce(n.task_id, %(before_index)s::text || i.item_index || %(after_index)s::text) AS task_id
) AS t
LEFT JOIN LATERAL (
    SELECT task_id, status, error_code, worker_id, handler_version, started_at
    FROM dagapp.dag_task_results
    WHERE task_id = t.task_id
    LIMIT 1
) AS r ON true
LEFT JOIN LATERAL (
    SELECT lease_token, leased_by, enqueued_at, started_at, progress, progress_message
    FROM dagapp.dag_queue
    WHERE queue_name = %(queue_name)s AND message_id = t.task_id
    LIMIT 1
) AS q ON true
ORDER BY i.place;

-- name: indexes_with_status
-- Items whose rows have this status.
SELECT item_index
FROM dagapp.dag_node_states
WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index > %(after)s AND item_index >= 0
  AND status = %(status)s::dagapp.node_status
ORDER BY item_index
LIMIT %(limit)s;

-- name: indexes_leased
-- Items whose messages a worker has. There are no more of them than the workers have slots.
SELECT (q.body ->> 'item_index')::integer AS item_index
FROM dagapp.dag_queue AS q
WHERE q.lease_token IS NOT NULL AND starts_with(q.message_id, %(before_index)s)
ORDER BY 1;

-- name: indexes_sent
-- Items that were sent and of which nothing more is known.
SELECT i.item_index
FROM generate_series(%(after)s::integer + 1, %(items_sent)s::integer - 1) AS i (item_index)
WHERE i.item_index <> ALL (%(leased)s::integer[])
  AND NOT EXISTS (
      SELECT FROM dagapp.dag_node_states AS n
      WHERE n.job_id = %(job_id)s AND n.node_id = %(node_id)s AND n.item_index = i.item_index
        AND n.status <> 'dispatched')
ORDER BY i.item_index
LIMIT %(limit)s;

-- name: indexes_slowest
-- Items that have ended, the slowest first.
SELECT item_index, seconds
FROM (
    SELECT item_index, extract(epoch FROM completed_at - started_at)::float8 AS seconds
    FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index >= 0 AND started_at IS NOT NULL
      AND completed_at IS NOT NULL
      AND (%(status)s::dagapp.node_status IS NULL OR status = %(status)s::dagapp.node_status)
) AS timed
WHERE %(before)s::float8 IS NULL OR seconds < %(before)s OR (seconds = %(before)s AND item_index > %(after)s)
ORDER BY seconds DESC, item_index
LIMIT %(limit)s;

-- name: item_counts
-- The rows of a fan-out's items by status, in buckets of neighbours, and the run times of all. The line without a bucket
-- is of all of them.
SELECT bucket, status::text AS status, count(*) AS items, min(seconds) AS fastest, max(seconds) AS slowest,
       percentile_cont(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY seconds) AS quantiles
FROM (
    SELECT (item_index::bigint * %(buckets)s / %(items_total)s)::integer AS bucket, status,
           extract(epoch FROM completed_at - started_at)::float8 AS seconds
    FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index >= 0
) AS timed
GROUP BY GROUPING SETS ((bucket, status), ());

-- name: item_rows
-- What the rows of these items say.
SELECT item_index, status::text AS status
FROM dagapp.dag_node_states
WHERE job_id = %(job_id)s AND node_id = %(node_id)s AND item_index = ANY (%(indexes)s::integer[]);

-- name: code_versions
-- The code versions that ran at each node, the earliest first. Reads the rows of the job once, and then a bounded number of
-- results by their task ids: those of nodes, and those of the first and the last item of each worker and attempt number.
-- The results of earlier attempts at the same are among them.
WITH runs AS MATERIALIZED (
    SELECT node_id, attempt, min(item_index) AS first_index, max(item_index) AS last_index
    FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND task_id IS NOT NULL
    GROUP BY node_id, worker_id, attempt, item_index < 0
    LIMIT %(runs)s
), places AS (
    SELECT node_id, attempt, first_index AS item_index FROM runs
    UNION
    SELECT node_id, attempt, last_index FROM runs
), attempts AS (
    SELECT p.node_id, %(job_id)s || ':' || p.node_id
                      || CASE WHEN p.item_index >= 0 THEN '[' || p.item_index || ']' ELSE '' END
                      || ':' || number AS task_id
    FROM places AS p
    CROSS JOIN LATERAL generate_series(greatest(p.attempt - %(attempts)s::bigint, 0) + 1, p.attempt) AS number
    LIMIT %(results)s
)
SELECT a.node_id, r.handler_version
FROM attempts AS a
CROSS JOIN LATERAL (
    SELECT handler_version, reported_at
    FROM dagapp.dag_task_results
    WHERE task_id = a.task_id
    LIMIT 1
) AS r
WHERE r.handler_version IS NOT NULL
GROUP BY a.node_id, r.handler_version
ORDER BY min(r.reported_at), r.handler_version;
