-- Schedules. The process that has locked a row handles its due times; the others skip the row.

-- columns: new_schedule of dagapp.dag_schedules without last_fired_at, last_error, held_until, open_jobs, updated_at

-- name: create
INSERT INTO dagapp.dag_schedules ({columns of new_schedule})
VALUES ({values of new_schedule})
ON CONFLICT (schedule_id) DO NOTHING
RETURNING {columns of dagapp.dag_schedules};

-- name: lock
SELECT {columns of dagapp.dag_schedules} FROM dagapp.dag_schedules WHERE schedule_id = %(schedule_id)s FOR UPDATE;

-- name: all
SELECT {columns of dagapp.dag_schedules} FROM dagapp.dag_schedules ORDER BY schedule_id;

-- name: page
SELECT {columns of dagapp.dag_schedules}
FROM dagapp.dag_schedules
WHERE (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
  AND (%(after)s::text IS NULL OR schedule_id > %(after)s)
ORDER BY schedule_id
LIMIT %(limit)s;

-- name: get
SELECT {columns of dagapp.dag_schedules} FROM dagapp.dag_schedules WHERE schedule_id = %(schedule_id)s;

-- name: change
UPDATE dagapp.dag_schedules
SET input_params = %(input_params)s, cron = %(cron)s, interval_seconds = %(interval_seconds)s, timezone = %(timezone)s,
    catch_up = %(catch_up)s, max_concurrent = %(max_concurrent)s, paused = %(paused)s, next_due_at = %(next_due_at)s,
    held_until = NULL, updated_at = now()
WHERE schedule_id = %(schedule_id)s
RETURNING {columns of dagapp.dag_schedules};

-- columns: history of dagapp.dag_jobs without input_params, result_data, node_summary

-- name: jobs
-- The jobs that a schedule has started, the newest first. Their inputs and results are left out.
SELECT {columns of history}
FROM dagapp.dag_jobs
WHERE correlation_id = %(schedule_id)s AND submitted_by = 'schedule'
  AND (%(before)s::timestamptz IS NULL OR (created_at, job_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY created_at DESC, job_id DESC
LIMIT %(limit)s;

-- name: delete
DELETE FROM dagapp.dag_schedules WHERE schedule_id = %(schedule_id)s RETURNING schedule_id;

-- name: set_paused
UPDATE dagapp.dag_schedules
SET paused = %(paused)s, next_due_at = %(next_due_at)s, held_until = NULL, updated_at = now()
WHERE schedule_id = %(schedule_id)s
RETURNING {columns of dagapp.dag_schedules};

-- name: due
-- The schedules that are due, the longest overdue first. One that could not fire waits for a while and blocks no other.
SELECT {columns of dagapp.dag_schedules}
FROM dagapp.dag_schedules
WHERE NOT paused AND next_due_at <= now() AND (held_until IS NULL OR held_until <= now())
ORDER BY next_due_at
LIMIT %(limit)s
FOR UPDATE SKIP LOCKED;

-- name: still_open
-- The jobs that have not ended: they wait in the queue, or run. One statement, so that a job on its way from the queue to
-- its row is found.
SELECT wanted.job_id
FROM unnest(%(job_ids)s::text[]) AS wanted (job_id)
WHERE EXISTS (SELECT FROM dagapp.dag_queue AS q
              WHERE q.queue_name IN (%(queue_name)s::text, %(queue_name)s::text || '.unknown') AND q.message_id = wanted.job_id)
   OR EXISTS (SELECT FROM dagapp.dag_jobs AS j
              WHERE j.job_id = wanted.job_id AND j.status IN ('pending', 'running'));

-- name: advance
UPDATE dagapp.dag_schedules AS s
SET next_due_at = a.next_due_at,
    last_fired_at = coalesce(a.fired_at, s.last_fired_at),
    last_error = a.last_error,
    held_until = now() + make_interval(secs => a.hold_seconds),
    open_jobs = a.open_jobs::jsonb,
    updated_at = now()
FROM unnest(
    %(schedule_ids)s::text[], %(next_due_at)s::timestamptz[], %(fired_at)s::timestamptz[], %(last_errors)s::text[],
    %(hold_seconds)s::float8[], %(open_jobs)s::text[]
) AS a (schedule_id, next_due_at, fired_at, last_error, hold_seconds, open_jobs)
WHERE s.schedule_id = a.schedule_id;
