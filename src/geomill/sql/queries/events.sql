-- The history of jobs: only ever added to.

-- name: insert
INSERT INTO dagapp.dag_job_events (job_id, node_id, item_index, event_type, event_status, event_data, checkpoint_name)
SELECT e.job_id, e.node_id, e.item_index, e.event_type, e.event_status, e.event_data::jsonb, e.checkpoint_name
FROM unnest(
    %(job_ids)s::text[], %(node_ids)s::text[], %(item_indexes)s::integer[], %(types)s::dagapp.event_type[],
    %(statuses)s::dagapp.event_status[], %(data)s::text[], %(checkpoint_names)s::text[]
) AS e (job_id, node_id, item_index, event_type, event_status, event_data, checkpoint_name);

-- name: of_job
SELECT *
FROM dagapp.dag_job_events
WHERE job_id = %(job_id)s AND event_id > %(after)s
ORDER BY event_id
LIMIT %(limit)s;
