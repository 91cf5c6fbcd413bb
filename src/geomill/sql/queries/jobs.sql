-- Jobs. Only their owner writes them, fenced by the epoch.

-- name: get
SELECT {columns of dagapp.dag_jobs} FROM dagapp.dag_jobs WHERE job_id = %(job_id)s;

-- name: by_idempotency_key
SELECT {columns of dagapp.dag_jobs} FROM dagapp.dag_jobs WHERE idempotency_key = %(idempotency_key)s;

-- name: waiting
-- A submission that no orchestrator has claimed yet.
SELECT body, priority, enqueued_at
FROM dagapp.dag_queue
WHERE queue_name IN (%(queue_name)s::text, %(queue_name)s::text || '.unknown') AND message_id = %(message_id)s;

-- name: reclaim
-- Takes over a bounded batch of jobs whose owner is dead, or that have none. Parked jobs wait to be released.
WITH orphans AS MATERIALIZED (
    SELECT job_id
    FROM dagapp.dag_jobs AS j
    WHERE j.status IN ('pending', 'running') AND j.parked_at IS NULL
      AND (j.owner_id IS NULL
           OR j.owner_id = ANY(%(dead)b::text[])
           OR NOT EXISTS (SELECT FROM dagapp.dag_instances AS i WHERE i.instance_id = j.owner_id))
    ORDER BY j.job_id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE dagapp.dag_jobs AS j
SET owner_id = %(owner_id)s, owner_epoch = j.owner_epoch + 1, owner_heartbeat_at = now(), updated_at = now()
FROM orphans
WHERE j.job_id = orphans.job_id
RETURNING {columns of dagapp.dag_jobs as j};

-- name: owned
SELECT {columns of dagapp.dag_jobs} FROM dagapp.dag_jobs WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running');

-- name: release
-- A graceful stop: the next orchestrator takes the jobs over at once.
UPDATE dagapp.dag_jobs
SET owner_id = NULL, owner_epoch = owner_epoch + 1, updated_at = now()
WHERE owner_id = %(owner_id)s AND status IN ('pending', 'running');

-- name: overdue
SELECT job_id FROM dagapp.dag_jobs WHERE owner_id = %(owner_id)s AND deadline_at < now() AND completed_at IS NULL;

-- name: lock
SELECT {columns of dagapp.dag_jobs} FROM dagapp.dag_jobs WHERE job_id = %(job_id)s FOR UPDATE;

-- name: reopen
-- An operator's retry: the job runs again, and the next orchestrator that looks for orphans takes it over.
UPDATE dagapp.dag_jobs
SET status = 'running', result_data = NULL, node_summary = NULL, error_message = NULL, failed_node_id = NULL, completed_at = NULL,
    paused_at = NULL, parked_at = NULL, parked_reason = NULL, deadline_at = now() + (deadline_at - created_at), owner_id = NULL, owner_epoch = owner_epoch + 1,
    run_number = run_number + 1, updated_at = now()
WHERE job_id = %(job_id)s;

-- name: quarantine
-- Ends a job that its owner cannot decide on, so that it does not stop the others.
WITH job AS (
    UPDATE dagapp.dag_jobs
    SET status = 'failed', error_message = %(error)s, completed_at = now(), updated_at = now()
    WHERE job_id = %(job_id)s AND owner_id = %(owner_id)s AND status IN ('pending', 'running')
    RETURNING job_id
), nodes AS (
    UPDATE dagapp.dag_node_states AS n
    SET status = CASE WHEN n.status IN ('dispatched', 'running') THEN 'cancelled' ELSE 'skipped' END::dagapp.node_status,
        completed_at = now(), updated_at = now()
    FROM job
    WHERE n.job_id = job.job_id AND n.status IN ('pending', 'ready', 'dispatched', 'running')
), items AS (
    INSERT INTO dagapp.dag_node_states (job_id, node_id, item_index, status, attempt, dispatched_at, completed_at)
    SELECT n.job_id, n.node_id, item.item_index, 'cancelled', 1, now(), now()
    FROM job
    JOIN dagapp.dag_node_states AS n ON n.job_id = job.job_id AND n.item_index = -1 AND n.status = 'running'
    CROSS JOIN generate_series(0, n.items_sent - 1) AS item (item_index)
    ON CONFLICT (job_id, node_id, item_index) DO NOTHING
), reports AS (
    DELETE FROM dagapp.dag_inbox AS i USING job WHERE i.job_id = job.job_id
), messages AS (
    DELETE FROM dagapp.dag_queue AS q USING job WHERE q.body ->> 'job_id' = job.job_id AND q.body ? 'task_id'
)
INSERT INTO dagapp.dag_job_events (job_id, event_type, event_status, event_data)
SELECT job_id, 'job_failed', 'failure', jsonb_build_object('error', %(error)s::text) FROM job;

-- name: park
-- Parks a job that can be neither decided on nor ended. It has no owner, nobody takes it over, and its reports wait
-- without an owner. No trigger that follows a job's status fires.
WITH job AS (
    UPDATE dagapp.dag_jobs
    SET parked_at = now(), parked_reason = %(reason)s, owner_id = NULL, owner_epoch = owner_epoch + 1, updated_at = now()
    WHERE job_id = %(job_id)s AND owner_id = %(owner_id)s AND status IN ('pending', 'running')
    RETURNING job_id
), reports AS (
    UPDATE dagapp.dag_inbox AS i SET owner_id = '' FROM job WHERE i.job_id = job.job_id
)
INSERT INTO dagapp.dag_job_events (job_id, event_type, event_status, event_data)
SELECT job_id, 'job_parked', 'failure', jsonb_build_object('reason', %(reason)s::text) FROM job;

-- name: release_parked
-- The next orchestrator that looks for orphans takes the job over.
WITH job AS (
    UPDATE dagapp.dag_jobs
    SET parked_at = NULL, parked_reason = NULL, updated_at = now()
    WHERE job_id = %(job_id)s AND parked_at IS NOT NULL AND status IN ('pending', 'running')
    RETURNING job_id
)
INSERT INTO dagapp.dag_job_events (job_id, event_type, event_data)
SELECT job_id, 'job_released', jsonb_build_object('by', %(released_by)s::text) FROM job
RETURNING job_id;

-- name: parked
-- Parked jobs, the longest parked first.
SELECT job_id, workflow_id, parked_at, parked_reason
FROM dagapp.dag_jobs
WHERE parked_at IS NOT NULL
ORDER BY parked_at
LIMIT %(limit)s;

-- name: unlocked
-- The jobs whose rows are not locked: the job's own row, and the row of its asset.
WITH jobs AS MATERIALIZED (
    SELECT j.job_id, j.asset_id
    FROM dagapp.dag_jobs AS j
    WHERE j.job_id = ANY(%(job_ids)b::text[])
    FOR NO KEY UPDATE SKIP LOCKED
), assets AS MATERIALIZED (
    SELECT a.asset_id
    FROM app.geospatial_assets AS a
    WHERE a.asset_id IN (SELECT jobs.asset_id FROM jobs)
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT jobs.job_id
FROM jobs
WHERE jobs.asset_id IS NULL
   OR jobs.asset_id IN (SELECT assets.asset_id FROM assets)
   OR NOT EXISTS (SELECT FROM app.geospatial_assets AS a WHERE a.asset_id = jobs.asset_id);

-- name: ended
-- Tasks of a failed or cancelled job stop a moment later.
SELECT coalesce(
    (SELECT completed_at IS NOT NULL
        AND (status = 'completed' OR definition_hash IS NULL OR completed_at < now() - make_interval(secs => %(quiet)s))
     FROM dagapp.dag_jobs WHERE job_id = %(job_id)s),
    NOT EXISTS (SELECT FROM dagapp.dag_queue WHERE message_id = %(job_id)s)
) AS ended;
