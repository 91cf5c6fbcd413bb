-- Live processes of geomill. Each has an advisory lock on its own session while it lives.

-- columns: new_instance of dagapp.dag_instances without duties, counts, looked_at, started_at, heartbeat_at

-- name: register
INSERT INTO dagapp.dag_instances ({columns of new_instance})
VALUES ({values of new_instance})
ON CONFLICT (instance_id) DO UPDATE SET heartbeat_at = now()
RETURNING xmax = 0 AS is_new;

-- name: hold
SELECT pg_try_advisory_lock(%(lock_key)s) AS held;

-- name: beat
WITH beaten AS (
    UPDATE dagapp.dag_instances
    SET heartbeat_at = now(), counts = %(counts)s::jsonb,
        looked_at = now() - make_interval(secs => %(look_seconds)s::float8)
    WHERE instance_id = %(instance_id)s
    RETURNING instance_id
)
SELECT EXISTS (SELECT FROM beaten) AS registered,
       EXISTS (SELECT FROM pg_locks AS l
               WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                 AND (l.classid::bigint << 32) + l.objid::bigint = %(lock_key)s) AS locked;

-- name: remove
DELETE FROM dagapp.dag_instances WHERE instance_id = %(instance_id)s;

-- name: all
SELECT {columns of dagapp.dag_instances} FROM dagapp.dag_instances ORDER BY role, started_at;

-- name: note_handlers
INSERT INTO dagapp.dag_instance_handlers (instance_id, handlers, versions)
SELECT i.instance_id, %(handlers)s::jsonb, %(versions)s::jsonb
FROM dagapp.dag_instances AS i
WHERE i.instance_id = %(instance_id)s
ON CONFLICT (instance_id) DO UPDATE SET handlers = EXCLUDED.handlers, versions = EXCLUDED.versions;

-- name: serving
-- The handlers of each live process. A worker of an earlier release notes no versions.
SELECT i.instance_id, i.version, i.hostname, i.pid, i.queues, h.handlers, h.versions
FROM dagapp.dag_instances AS i
JOIN dagapp.dag_instance_handlers AS h USING (instance_id)
WHERE EXISTS (SELECT FROM pg_locks AS l
              WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key)
ORDER BY i.started_at, i.instance_id;

-- name: served_elsewhere
-- The handlers that another worker of their queue has. A dead worker counts until its row is gone, which takes seconds.
SELECT u.queue_name, u.handler
FROM unnest(%(queue_names)s::text[], %(handlers)s::text[]) AS u (queue_name, handler)
WHERE EXISTS (SELECT FROM dagapp.dag_instances AS i
              JOIN dagapp.dag_instance_handlers AS h USING (instance_id)
              WHERE i.instance_id <> %(instance_id)s AND i.queues ? u.queue_name AND h.handlers ? u.handler);

-- name: overview
-- Every process with its load. Both counts read one index entry for each job or task that they count.
SELECT i.instance_id, i.role::text, i.hostname, i.pid, i.version, i.queues, i.slots, i.counts, i.started_at, i.looked_at,
       extract(epoch FROM now() - i.heartbeat_at)::float8 AS heartbeat_seconds,
       EXISTS (SELECT FROM pg_locks AS l
               WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                 AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key) AS alive,
       (SELECT count(*) FROM dagapp.dag_jobs AS j
        WHERE j.owner_id = i.instance_id AND j.status IN ('pending', 'running')) AS owned_jobs,
       (SELECT count(*) FROM dagapp.dag_queue AS q
        WHERE q.leased_by = i.instance_id AND q.lease_token IS NOT NULL) AS leased_tasks
FROM dagapp.dag_instances AS i
ORDER BY i.role, i.started_at, i.instance_id;

-- name: heartbeat
SELECT heartbeat_at FROM dagapp.dag_instances WHERE instance_id = %(instance_id)s;

-- name: absent
-- Processes whose lock is free: their session is gone, and perhaps the process too. And processes that have been silent
-- for too long, such as a frozen one, or one behind a pooler that keeps its session open.
SELECT i.instance_id, i.role, i.heartbeat_at,
       i.heartbeat_at < now() - make_interval(secs => %(silent_seconds)s) AS silent
FROM dagapp.dag_instances AS i
WHERE i.heartbeat_at < now() - make_interval(secs => %(silent_seconds)s)
   OR NOT EXISTS (
    SELECT
    FROM pg_locks AS l
    WHERE l.locktype = 'advisory'
      AND l.granted
      AND l.objsubid = 1
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key
);

-- name: look
-- Everything that an orchestrator may have to do, so that an idle platform costs one query a second. Questions that read
-- the dead entries of hot tables, where these cannot be vacuumed, are answered only if the look is `thorough`.
SELECT
    EXISTS (SELECT FROM dagapp.dag_instances AS i
            WHERE i.heartbeat_at < now() - make_interval(secs => %(silent_seconds)s)
               OR NOT EXISTS (SELECT FROM pg_locks AS l
                              WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                                AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key)) AS absent,
    -- After a crash of one session the server begins again under the same postmaster: that resets its statistics.
    greatest(pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_bgwriter))
        < now() - make_interval(secs => %(settle_seconds)s) AS settled,
    %(thorough)s::boolean AND EXISTS (SELECT FROM dagapp.dag_jobs AS j
            LEFT JOIN dagapp.dag_instances AS i ON i.instance_id = j.owner_id
            WHERE j.status IN ('pending', 'running') AND j.parked_at IS NULL AND i.instance_id IS NULL) AS orphans,
    %(thorough)s::boolean AND (
        EXISTS (SELECT FROM dagapp.dag_queue WHERE lease_token IS NULL AND expires_at < now())
        OR EXISTS (SELECT FROM dagapp.dag_queue WHERE lease_token IS NOT NULL AND leased_until < now())) AS lapsed,
    EXISTS (SELECT FROM dagapp.dag_jobs
            WHERE owner_id = %(owner_id)s AND deadline_at < now() AND completed_at IS NULL) AS overdue,
    %(thorough)s::boolean AND EXISTS (SELECT FROM dagapp.dag_inbox AS i JOIN dagapp.dag_jobs AS j USING (job_id)
            WHERE j.owner_id = %(owner_id)s AND i.owner_id <> j.owner_id) AS strays,
    EXISTS (SELECT FROM dagapp.dag_schedules
            WHERE NOT paused AND next_due_at <= now() AND (held_until IS NULL OR held_until <= now())) AS schedules,
    EXISTS (SELECT FROM dagapp.dag_jobs
            WHERE callback_url IS NOT NULL AND completed_at IS NOT NULL AND called_back_run < run_number)
        OR EXISTS (SELECT FROM dagapp.dag_callbacks WHERE status = 'pending' AND due_at <= now()) AS callbacks,
    EXISTS (SELECT FROM catalogue.pending WHERE due_at <= now()) AS catalogue,
    %(thorough)s::boolean AND EXISTS (SELECT FROM dagapp.dag_inbox WHERE owner_id = %(owner_id)s) AS reports,
    %(thorough)s::boolean AND EXISTS (SELECT FROM dagapp.dag_queue
            WHERE queue_name = %(job_queue)s AND lease_token IS NULL AND visible_at <= now()) AS submissions,
    (SELECT count(*) FROM dagapp.dag_instances WHERE role = 'orchestrator') AS peers,
    CASE WHEN %(thorough)s::boolean
         THEN (SELECT count(*) FROM dagapp.dag_jobs WHERE status IN ('pending', 'running')) END AS active;

-- name: forget
DELETE FROM dagapp.dag_instances WHERE instance_id = ANY(%(instance_ids)s);
