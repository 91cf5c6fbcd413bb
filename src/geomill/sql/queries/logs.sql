-- What handlers said while they ran: only ever added to.

-- name: insert
-- Lines of a job that is gone go with it.
INSERT INTO dagapp.dag_task_logs (job_id, node_id, item_index, attempt, level, message)
SELECT l.job_id, l.node_id, l.item_index, l.attempt, l.level, l.message
FROM unnest(
    %(job_ids)b::text[], %(node_ids)b::text[], %(item_indexes)b::integer[], %(attempts)b::bigint[],
    %(levels)b::text[], %(messages)b::text[]
) WITH ORDINALITY AS l (job_id, node_id, item_index, attempt, level, message, place)
WHERE EXISTS (SELECT FROM dagapp.dag_jobs AS j WHERE j.job_id = ANY (ARRAY[l.job_id]))
ORDER BY l.place;

-- name: of_job
SELECT {columns of dagapp.dag_task_logs}
FROM dagapp.dag_task_logs
WHERE job_id = %(job_id)s AND log_id > %(after)s AND (%(node_id)s::text IS NULL OR node_id = %(node_id)s)
ORDER BY log_id
LIMIT %(limit)s;
