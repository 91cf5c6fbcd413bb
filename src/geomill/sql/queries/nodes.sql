-- Nodes and fan-out items of jobs: written only by the job's owner.

-- name: insert
INSERT INTO dagapp.dag_node_states (
    job_id, node_id, item_index, status, task_id, attempt, retry_count, output, error_message, not_before,
    dispatched_at, completed_at
)
SELECT u.job_id, u.node_id, u.item_index, u.status, u.task_id, u.attempt, u.retry_count, u.output::jsonb,
       u.error_message, u.not_before,
       CASE WHEN u.status IN ('dispatched', 'running', 'cancelled') THEN now() END,
       CASE WHEN u.status IN ('completed', 'failed', 'skipped', 'cancelled') THEN now() END
FROM unnest(
    %(job_ids)s::text[], %(node_ids)s::text[], %(item_indexes)s::integer[], %(statuses)s::dagapp.node_status[],
    %(task_ids)s::text[], %(attempts)s::bigint[], %(retry_counts)s::integer[], %(outputs)s::text[],
    %(errors)s::text[], %(not_before)s::timestamptz[]
) AS u (job_id, node_id, item_index, status, task_id, attempt, retry_count, output, error_message, not_before);

-- name: update
UPDATE dagapp.dag_node_states AS n
SET status = u.status,
    task_id = u.task_id,
    attempt = u.attempt,
    retry_count = u.retry_count,
    output = u.output::jsonb,
    error_message = u.error_message,
    not_before = u.not_before,
    worker_id = coalesce(u.worker_id, n.worker_id),
    dispatched_at = CASE
        WHEN u.status = 'dispatched' THEN now()
        WHEN u.status IN ('running', 'cancelled') THEN coalesce(n.dispatched_at, now())
        ELSE n.dispatched_at
    END,
    started_at = CASE WHEN u.status = 'dispatched' THEN NULL ELSE coalesce(u.started_at, n.started_at) END,
    completed_at = CASE WHEN u.status IN ('completed', 'failed', 'skipped', 'cancelled') THEN now() END,
    updated_at = now()
FROM unnest(
    %(job_ids)s::text[], %(node_ids)s::text[], %(item_indexes)s::integer[], %(statuses)s::dagapp.node_status[],
    %(task_ids)s::text[], %(attempts)s::bigint[], %(retry_counts)s::integer[], %(outputs)s::text[],
    %(errors)s::text[], %(not_before)s::timestamptz[], %(worker_ids)s::text[], %(started_at)s::timestamptz[]
) AS u (
    job_id, node_id, item_index, status, task_id, attempt, retry_count, output, error_message, not_before,
    worker_id, started_at
)
WHERE n.job_id = u.job_id AND n.node_id = u.node_id AND n.item_index = u.item_index;

-- name: of_job
SELECT * FROM dagapp.dag_node_states WHERE job_id = %(job_id)s ORDER BY created_at, node_id, item_index;

-- name: summary
-- One row per node; the items of a fan-out are counted.
SELECT n.*,
       coalesce(items.total, 0) AS items_total,
       coalesce(items.completed, 0) AS items_completed,
       coalesce(items.failed, 0) AS items_failed
FROM dagapp.dag_node_states AS n
LEFT JOIN (
    SELECT node_id,
           count(*) AS total,
           count(*) FILTER (WHERE status = 'completed') AS completed,
           count(*) FILTER (WHERE status = 'failed') AS failed
    FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND item_index >= 0
    GROUP BY node_id
) AS items USING (node_id)
WHERE n.job_id = %(job_id)s AND n.item_index = -1;

-- name: item_outputs
-- The outputs of a fan-out's completed items, in the order of the list: each item's current attempt and no other.
-- `fresh` are those that complete in this very transaction.
SELECT r.output
FROM dagapp.dag_node_states AS n
JOIN dagapp.dag_task_results AS r ON r.task_id = n.task_id
WHERE n.job_id = %(job_id)s AND n.node_id = %(node_id)s AND n.item_index >= 0
  AND (n.status = 'completed' OR n.item_index = ANY(%(fresh)s))
ORDER BY n.item_index;

-- name: reopen
UPDATE dagapp.dag_node_states AS n
SET status = u.status, attempt = u.attempt, retry_count = 0, output = NULL, error_message = NULL, not_before = NULL,
    task_id = u.task_id, started_at = NULL, completed_at = NULL, updated_at = now()
FROM unnest(
    %(node_ids)s::text[], %(item_indexes)s::integer[], %(statuses)s::dagapp.node_status[], %(attempts)s::bigint[],
    %(task_ids)s::text[]
) AS u (node_id, item_index, status, attempt, task_id)
WHERE n.job_id = %(job_id)s AND n.node_id = u.node_id AND n.item_index = u.item_index;
