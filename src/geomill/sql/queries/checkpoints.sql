-- Checkpoints, from which tasks can resume.

-- columns: checkpoint of dagapp.dag_checkpoints without data, saved_at

-- name: save
-- Only a valid lease lets a task save, and an older attempt never overwrites the checkpoint of a newer one.
INSERT INTO dagapp.dag_checkpoints AS c ({columns of checkpoint}, data)
SELECT {columns of checkpoint as u}, u.data::jsonb
FROM unnest(
    %(sequences)b::bigint[], %(tokens)b::bigint[], %(job_ids)b::text[], %(node_ids)b::text[],
    %(item_indexes)b::integer[], %(phases)b::text[], %(attempts)b::bigint[], %(data)b::text[]
) AS u (sequence, lease_token, {columns of checkpoint}, data)
JOIN dagapp.dag_queue AS q ON q.sequence = ANY (ARRAY[u.sequence]) AND coalesce(q.lease_token, 0) = u.lease_token
ON CONFLICT (job_id, node_id, item_index) DO UPDATE
SET phase = excluded.phase, data = excluded.data, attempt = excluded.attempt, saved_at = now()
WHERE c.attempt <= excluded.attempt;

-- name: read
SELECT c.job_id, c.node_id, c.item_index, c.phase, c.data
FROM unnest(%(job_ids)b::text[], %(node_ids)b::text[], %(item_indexes)b::integer[]) AS t (job_id, node_id, item_index)
JOIN dagapp.dag_checkpoints AS c
  ON c.job_id = ANY (ARRAY[t.job_id]) AND c.node_id = t.node_id AND c.item_index = t.item_index;

-- name: announce
-- Adds an event for each of these checkpoints that was saved.
INSERT INTO dagapp.dag_job_events (job_id, node_id, item_index, event_type, checkpoint_name, event_data)
SELECT c.job_id, c.node_id, c.item_index, 'checkpoint_saved', c.phase,
       jsonb_build_object('attempt', c.attempt, 'worker', %(worker_id)s::text)
FROM unnest(
    %(job_ids)b::text[], %(node_ids)b::text[], %(item_indexes)b::integer[], %(attempts)b::bigint[], %(phases)b::text[]
) AS u (job_id, node_id, item_index, attempt, phase)
JOIN dagapp.dag_checkpoints AS c
  ON c.job_id = ANY (ARRAY[u.job_id]) AND c.node_id = u.node_id AND c.item_index = u.item_index
 AND c.attempt = u.attempt AND c.phase = u.phase;
