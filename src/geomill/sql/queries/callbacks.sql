-- Callbacks to deliver because a job has ended.

-- name: find
-- Adds the callbacks of jobs that have ended. The index on dag_jobs has only jobs that lack theirs, so this costs nothing
-- if there are none, and it adds nothing to the transaction of the verdict. The callback of an asset's job waits until the
-- catalogue entry was written or refused, so that its receiver finds the item.
WITH ended AS MATERIALIZED (
    SELECT j.job_id
    FROM dagapp.dag_jobs AS j
    WHERE j.callback_url IS NOT NULL AND j.completed_at IS NOT NULL AND j.called_back_run < j.run_number
      AND NOT EXISTS (SELECT FROM catalogue.pending AS p WHERE p.asset_id = j.asset_id AND p.attempts = 0)
    ORDER BY j.completed_at
    LIMIT %(limit)s
    FOR UPDATE OF j SKIP LOCKED
), noted AS (
    UPDATE dagapp.dag_jobs AS j
    SET called_back_run = j.run_number
    FROM ended
    WHERE j.job_id = ended.job_id
    RETURNING j.job_id, j.run_number, j.callback_url, j.status, j.workflow_id, j.correlation_id, j.completed_at,
              j.error_message, j.failed_node_id, j.request_id
)
INSERT INTO dagapp.dag_callbacks (job_id, run_number, url, platform_id, payload)
SELECT job_id, run_number, callback_url,
       (SELECT r.platform_id FROM app.platform_requests AS r WHERE r.request_id = noted.request_id),
       jsonb_build_object('job_id', job_id, 'status', status, 'workflow_id', workflow_id,
                          'correlation_id', correlation_id, 'completed_at', completed_at, 'error', error_message)
       || coalesce((SELECT jsonb_build_object('stage_job_id', s.job_id, 'job_type', s.job_type, 'attempt', s.attempt,
                                                'error', dagapp.stage_error(s.run_id, failed_node_id, error_message))
                    FROM dagapp.dag_stage_jobs AS s WHERE s.run_id = noted.job_id), '{}')
FROM noted
ON CONFLICT (job_id, run_number) DO NOTHING;

-- name: claim
-- Claims callbacks to deliver now. Nobody else delivers them until the lease is over. A later attempt has a higher number.
WITH chosen AS MATERIALIZED (
    SELECT delivery_id
    FROM dagapp.dag_callbacks
    WHERE status = 'pending' AND due_at <= now()
    ORDER BY due_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE dagapp.dag_callbacks AS c
SET attempts = c.attempts + 1, due_at = now() + make_interval(secs => %(lease_seconds)s)
FROM chosen
WHERE c.delivery_id = chosen.delivery_id
RETURNING {columns of dagapp.dag_callbacks as c}, now() AS claimed_at;

-- name: settle
-- Returns nothing if the attempt is late and another one has begun.
UPDATE dagapp.dag_callbacks
SET status = %(status)s::dagapp.callback_status,
    due_at = coalesce(%(due_at)s, due_at),
    last_error = %(error)s,
    last_status = %(last_status)s,
    ended_at = CASE WHEN %(status)s::dagapp.callback_status <> 'pending' THEN now() END
WHERE delivery_id = %(delivery_id)s AND attempts = %(attempts)s AND status = 'pending'
RETURNING delivery_id;

-- name: page
-- The newest first. With a platform, only the callbacks of its requests.
SELECT {columns of dagapp.dag_callbacks}
FROM dagapp.dag_callbacks
WHERE (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
  AND (%(status)s::dagapp.callback_status IS NULL OR status = %(status)s)
  AND (%(before)s::timestamptz IS NULL
       OR (created_at, delivery_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY created_at DESC, delivery_id DESC
LIMIT %(limit)s;

-- name: latest
-- The callback of the latest run of a job. With a platform, only if the job works for a request of it.
SELECT {columns of dagapp.dag_callbacks}
FROM dagapp.dag_callbacks
WHERE job_id = %(job_id)s AND (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
ORDER BY run_number DESC
LIMIT 1;

-- name: send_again
-- Makes a callback due now. Changes nothing while it is due within seconds, because then an attempt may be under way.
UPDATE dagapp.dag_callbacks
SET status = 'pending', due_at = now(), sent_again_at = now(), ended_at = NULL
WHERE delivery_id = %(delivery_id)s
  AND (status <> 'pending' OR due_at > now() + make_interval(secs => %(soon_seconds)s))
RETURNING {columns of dagapp.dag_callbacks};

-- name: of_job
SELECT {columns of dagapp.dag_callbacks} FROM dagapp.dag_callbacks WHERE job_id = %(job_id)s ORDER BY run_number;
