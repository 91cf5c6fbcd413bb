-- Log lines of handlers. Rows are only added.

-- columns: line of dagapp.dag_task_logs without log_id, created_at

-- name: insert
-- Lines of a job that was deleted are dropped.
INSERT INTO dagapp.dag_task_logs ({columns of line})
SELECT {columns of line as l}
FROM unnest(
    %(job_ids)b::text[], %(node_ids)b::text[], %(item_indexes)b::integer[], %(attempts)b::bigint[],
    %(levels)b::text[], %(messages)b::text[]
) WITH ORDINALITY AS l ({columns of line}, place)
WHERE EXISTS (SELECT FROM dagapp.dag_jobs AS j WHERE j.job_id = ANY (ARRAY[l.job_id]))
ORDER BY l.place;

-- name: of_job
SELECT {columns of dagapp.dag_task_logs}
FROM dagapp.dag_task_logs
WHERE job_id = %(job_id)s AND log_id > %(after)s AND (%(node_id)s::text IS NULL OR node_id = %(node_id)s)
ORDER BY log_id
LIMIT %(limit)s;

-- name: examined
-- The next lines of a job, or of one of its items. Other filters are applied to them, so that a request reads a bounded
-- number of lines.
SELECT {columns of dagapp.dag_task_logs},
       (%(node_id)s::text IS NULL OR node_id = %(node_id)s)
       AND (%(attempt)s::bigint IS NULL OR attempt = %(attempt)s)
       AND (%(levels)s::text[] IS NULL OR level = ANY (%(levels)s::text[])) AS matches
FROM dagapp.dag_task_logs
WHERE job_id = %(job_id)s AND log_id > %(after)s
  AND (%(item_index)s::integer IS NULL OR (node_id = %(node_id)s AND item_index = %(item_index)s))
ORDER BY log_id
LIMIT %(examined)s

-- name: page
SELECT {columns of dagapp.dag_task_logs} FROM examined WHERE matches ORDER BY log_id LIMIT %(limit)s;

-- name: edge
SELECT coalesce(max(log_id), %(after)s) AS log_id, count(*) AS lines FROM examined;

-- name: latest
SELECT coalesce(max(log_id), 0) AS latest FROM dagapp.dag_task_logs WHERE job_id = %(job_id)s;
