-- Nodes and fan-out items of jobs. Only the job's owner writes them.

-- name: of_job
SELECT {columns of dagapp.dag_node_states} FROM dagapp.dag_node_states WHERE job_id = %(job_id)s ORDER BY created_at, node_id, item_index;

-- name: summary
-- One row per node; the items of a fan-out that have ended are counted.
SELECT n.job_id, n.node_id, n.status, n.task_id, n.attempt, n.retry_count, n.output, n.error_message, n.started_at,
       n.completed_at, n.dispatched_at, n.worker_id,
       CASE WHEN n.status = 'failed'
            THEN (SELECT r.error_code FROM dagapp.dag_task_results AS r WHERE r.task_id = n.task_id) END AS error_code,
       coalesce(n.items_total, 0) AS items_total, n.items_sent,
       coalesce(items.completed, 0) AS items_completed,
       coalesce(items.failed, 0) AS items_failed
FROM dagapp.dag_node_states AS n
LEFT JOIN (
    SELECT node_id,
           count(*) FILTER (WHERE status = 'completed') AS completed,
           count(*) FILTER (WHERE status = 'failed') AS failed
    FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND item_index >= 0
    GROUP BY node_id
) AS items USING (node_id)
WHERE n.job_id = %(job_id)s AND n.item_index = -1;

-- name: item_outcomes
-- The outcomes of a fan-out's items after an index, in the order of the list. Each has the output of the item's current
-- attempt, as text, or its error.
SELECT n.item_index AS index, n.status::text AS status, r.output::text AS output, n.error_message AS error
FROM dagapp.dag_node_states AS n
LEFT JOIN dagapp.dag_task_results AS r ON n.status = 'completed' AND r.task_id = ANY (ARRAY[n.task_id])
WHERE n.job_id = %(job_id)s AND n.node_id = %(node_id)s AND n.item_index >= 0
  AND n.item_index > %(after)s
  AND n.status IN ('completed', 'failed')
ORDER BY n.item_index
LIMIT %(rows)s;

-- name: results
-- The outputs, as text, of attempts at items whose rows are not written yet.
SELECT r.item_index AS index, 'completed' AS status, r.output::text AS output, NULL AS error
FROM unnest(%(task_ids)b::text[]) AS wanted (task_id)
JOIN dagapp.dag_task_results AS r ON r.task_id = ANY (ARRAY[wanted.task_id]);

-- name: outcomes_page
-- The outcomes of a fan-out's items after an index, in their order, as JSON text: at most `rows` rows and about
-- `characters` characters. `having` leaves out outputs without that key, except for those in the object store.
SELECT '[' || coalesce(string_agg(
           format('[%%s,%%s,%%s]', item_index, coalesce(output, 'null'), coalesce(to_json(error)::text, 'null')),
           ',' ORDER BY item_index
       ), '') || ']' AS page
FROM (
    SELECT item_index, output, error,
           sum(length(output)) OVER (ORDER BY item_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (
        SELECT n.item_index, r.output::text AS output,
               CASE WHEN n.status = 'failed' THEN coalesce(n.error_message, '') END AS error
        FROM dagapp.dag_node_states AS n
        LEFT JOIN dagapp.dag_task_results AS r ON n.status = 'completed' AND r.task_id = ANY (ARRAY[n.task_id])
        WHERE n.job_id = %(job_id)s AND n.node_id = %(node_id)s AND n.item_index > %(after)s
          AND n.item_index >= 0 AND n.status IN ('completed', 'failed')
          AND (%(having)s::text = '' OR r.output ? %(having)s::text OR r.output ? 'large_output')
        ORDER BY n.item_index
        LIMIT %(rows)s
    ) AS next
) AS measured
WHERE coalesce(before, 0) <= %(characters)s;

-- name: reopen
UPDATE dagapp.dag_node_states AS n
SET status = u.status, attempt = u.attempt, retry_count = 0, output = NULL, error_message = NULL, not_before = NULL,
    task_id = u.task_id, started_at = NULL, completed_at = NULL, updated_at = now()
FROM unnest(
    %(node_ids)b::text[], %(item_indexes)b::integer[], %(statuses)b::dagapp.node_status[], %(attempts)b::bigint[],
    %(task_ids)b::text[]
) AS u (node_id, item_index, status, attempt, task_id)
WHERE n.job_id = %(job_id)s AND n.node_id = u.node_id AND n.item_index = u.item_index;

-- name: discard
-- Deletes the rows of nodes that begin anew, their checkpoints and the items of their fan-outs with their results: items
-- begin with the first attempt again, and the list may be another one. Reports that the ended job did not take go, too,
-- since they may be about such an attempt.
WITH gone AS (
    DELETE FROM dagapp.dag_node_states
    WHERE job_id = %(job_id)s AND node_id = ANY (%(node_ids)s::text[])
    RETURNING job_id, node_id, item_index, attempt, items_sent
), checkpoints AS (
    DELETE FROM dagapp.dag_checkpoints WHERE job_id = %(job_id)s AND node_id = ANY (%(node_ids)s::text[])
), reports AS (
    DELETE FROM dagapp.dag_inbox WHERE job_id = %(job_id)s
)
DELETE FROM dagapp.dag_task_results AS r
USING (SELECT job_id || ':' || node_id || '[' || item_index || ']:' || number AS task_id
       FROM gone, generate_series(1, attempt) AS number
       WHERE item_index >= 0
       UNION ALL
       SELECT job_id || ':' || node_id || '[' || item || ']:1'
       FROM gone, generate_series(0, items_sent - 1) AS item
       WHERE item_index < 0
       OFFSET 0) AS attempts
WHERE r.task_id = ANY (ARRAY[attempts.task_id]);

-- name: begin_anew
INSERT INTO dagapp.dag_node_states (job_id, node_id, item_index, status, attempt, task_id)
SELECT %(job_id)s, u.node_id, u.item_index, u.status, u.attempt, u.task_id
FROM unnest(
    %(node_ids)b::text[], %(item_indexes)b::integer[], %(statuses)b::dagapp.node_status[], %(attempts)b::bigint[],
    %(task_ids)b::text[]
) AS u (node_id, item_index, status, attempt, task_id);
