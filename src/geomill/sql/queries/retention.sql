-- Deletes old rows: details of jobs, dead letters, and jobs that nothing refers to. The top of queue.sql explains why keys
-- are looked up by `ANY (ARRAY[…])`.

-- name: due
-- How many jobs have details to delete. Jobs whose callback is not delivered yet keep theirs, and so do jobs that made a
-- revision under review.
SELECT count(*) AS jobs
FROM dagapp.dag_jobs AS j
WHERE j.details_left AND j.completed_at < now() - make_interval(secs => %(older_than)s)
  AND NOT (j.callback_url IS NOT NULL AND (j.called_back_run < j.run_number OR EXISTS (
          SELECT FROM dagapp.dag_callbacks AS c WHERE c.job_id = ANY (ARRAY[j.job_id]) AND c.status = 'pending')))
  AND NOT (j.asset_id IS NOT NULL AND EXISTS (
          SELECT FROM app.geospatial_assets AS a
          WHERE a.asset_id = ANY (ARRAY[j.asset_id]) AND a.current_job_id = j.job_id AND a.deleted_at IS NULL
            AND a.approval_state = 'pending_review'));

-- name: mark
-- Marks the next jobs for the caller, for the length of a lease. They cannot be retried any more. If the caller dies,
-- another process follows when the lease is over.
WITH chosen AS MATERIALIZED (
    SELECT j.job_id
    FROM dagapp.dag_jobs AS j
    WHERE j.details_left AND j.completed_at < now() - make_interval(secs => %(older_than)s)
      AND (j.details_deleted_at IS NULL OR j.details_deleted_at < now() - make_interval(secs => %(lease_seconds)s))
      AND NOT (j.callback_url IS NOT NULL AND (j.called_back_run < j.run_number OR EXISTS (
              SELECT FROM dagapp.dag_callbacks AS c WHERE c.job_id = ANY (ARRAY[j.job_id]) AND c.status = 'pending')))
      AND NOT (j.asset_id IS NOT NULL AND EXISTS (
              SELECT FROM app.geospatial_assets AS a
              WHERE a.asset_id = ANY (ARRAY[j.asset_id]) AND a.current_job_id = j.job_id AND a.deleted_at IS NULL
                AND a.approval_state = 'pending_review'))
    ORDER BY j.completed_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE dagapp.dag_jobs AS j
SET details_deleted_at = now()
FROM chosen
WHERE j.job_id = ANY (ARRAY[chosen.job_id])
RETURNING j.job_id;

-- name: release
-- Removes the mark from jobs of which nothing was deleted.
UPDATE dagapp.dag_jobs SET details_deleted_at = NULL WHERE job_id = ANY(%(job_ids)s::text[]) AND details_left;

-- name: delete_rows
-- Deletes rows of marked jobs, at most `limit` of each kind. Results are found by their task ids, which follow from the
-- nodes, so they are deleted together with these.
WITH nodes AS (
    DELETE FROM dagapp.dag_node_states
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM dagapp.dag_node_states WHERE job_id = ANY(%(job_ids)s::text[]) LIMIT %(limit)s))
    RETURNING job_id, node_id, item_index, attempt
), results AS (
    DELETE FROM dagapp.dag_task_results AS r
    USING (SELECT job_id || ':' || node_id || CASE WHEN item_index >= 0 THEN '[' || item_index || ']' ELSE '' END
                  || ':' || number AS task_id
           FROM nodes, generate_series(1, attempt) AS number
           OFFSET 0) AS attempts
    WHERE r.task_id = ANY (ARRAY[attempts.task_id])
    RETURNING r.task_id
), logs AS (
    DELETE FROM dagapp.dag_task_logs
    WHERE log_id = ANY (ARRAY(
        SELECT log_id FROM dagapp.dag_task_logs WHERE job_id = ANY(%(job_ids)s::text[]) LIMIT %(limit)s))
    RETURNING log_id
), events AS (
    DELETE FROM dagapp.dag_job_events
    WHERE event_id = ANY (ARRAY(
        SELECT event_id FROM dagapp.dag_job_events WHERE job_id = ANY(%(job_ids)s::text[]) LIMIT %(limit)s))
    RETURNING event_id
), checkpoints AS (
    DELETE FROM dagapp.dag_checkpoints
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM dagapp.dag_checkpoints WHERE job_id = ANY(%(job_ids)s::text[]) LIMIT %(limit)s))
    RETURNING job_id
), callbacks AS (
    DELETE FROM dagapp.dag_callbacks WHERE job_id = ANY(%(job_ids)s::text[]) RETURNING delivery_id
)
SELECT (SELECT count(*) FROM nodes) AS nodes,
       (SELECT count(*) FROM results) AS results,
       (SELECT count(*) FROM logs) AS logs,
       (SELECT count(*) FROM events) AS events,
       (SELECT count(*) FROM checkpoints) AS checkpoints,
       (SELECT count(*) FROM callbacks) AS callbacks;

-- name: finish
UPDATE dagapp.dag_jobs SET details_left = false WHERE job_id = ANY(%(job_ids)s::text[]) AND details_deleted_at IS NOT NULL;

-- name: delete_dead_letters
-- The oldest dead letters have the lowest numbers.
DELETE FROM dagapp.dag_dead_letters
WHERE sequence = ANY (ARRAY(
          SELECT sequence FROM dagapp.dag_dead_letters ORDER BY sequence LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
  AND dead_lettered_at < now() - make_interval(secs => %(older_than)s);

-- name: delete_jobs
-- Jobs whose details are gone and to which no asset, request or stage job refers.
DELETE FROM dagapp.dag_jobs
WHERE job_id = ANY (ARRAY(
    SELECT j.job_id
    FROM dagapp.dag_jobs AS j
    WHERE NOT j.details_left AND j.asset_id IS NULL
      AND j.completed_at < now() - make_interval(secs => %(older_than)s)
      AND NOT EXISTS (SELECT FROM dagapp.dag_stage_jobs AS s WHERE s.run_id = ANY (ARRAY[j.job_id]))
    ORDER BY j.completed_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED));
