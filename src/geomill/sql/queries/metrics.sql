-- Figures about the whole platform, read cheaply from its tables. Every statement is bounded in rows, and in time by
-- `limit_time`. Windows are the last minutes.

-- name: limit_time
SELECT set_config('statement_timeout', %(milliseconds)s::text, true);

-- name: queues
SELECT queue_name,
       count(*) FILTER (WHERE lease_token IS NULL) AS waiting,
       count(*) FILTER (WHERE lease_token IS NOT NULL) AS leased,
       coalesce(extract(epoch FROM now() - min(enqueued_at) FILTER (WHERE lease_token IS NULL AND visible_at <= now())),
                0)::float8 AS oldest_seconds
FROM dagapp.dag_queue
GROUP BY queue_name
ORDER BY queue_name;

-- name: active_jobs
SELECT CASE WHEN parked_at IS NOT NULL THEN 'parked' WHEN paused_at IS NOT NULL THEN 'paused' ELSE status::text END
           AS status, count(*) AS jobs
FROM dagapp.dag_jobs
WHERE status IN ('pending', 'running')
GROUP BY 1;

-- name: recent_jobs
-- The states of the jobs that were created in the window.
WITH recent AS (
    SELECT status
    FROM dagapp.dag_jobs
    WHERE created_at > now() - make_interval(secs => %(window_seconds)s)
    ORDER BY created_at DESC
    LIMIT %(sample)s
)
SELECT status::text, count(*) AS jobs
FROM recent
GROUP BY status;

-- name: events
-- Only the newest events, found by their number.
SELECT event_type::text, count(*) AS events
FROM dagapp.dag_job_events
WHERE event_id > (SELECT max(event_id) FROM dagapp.dag_job_events) - %(sample)s
  AND created_at > now() - make_interval(secs => %(window_seconds)s)
GROUP BY event_type;

-- name: dead_letters
SELECT queue_name, reason, count(*) AS letters
FROM (SELECT queue_name, reason, dead_lettered_at
      FROM dagapp.dag_dead_letters
      ORDER BY sequence DESC
      LIMIT %(sample)s) AS newest
WHERE %(window_seconds)s::float8 IS NULL OR dead_lettered_at > now() - make_interval(secs => %(window_seconds)s)
GROUP BY queue_name, reason
ORDER BY queue_name, reason;

-- name: instances
-- Every process, and whether it is alive, which means that its lock is taken.
SELECT i.instance_id, i.role::text, i.version, i.hostname, i.pid, i.queues, i.duties, i.started_at,
       extract(epoch FROM now() - i.heartbeat_at)::float8 AS heartbeat_seconds,
       EXISTS (SELECT FROM pg_locks AS l
               WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                 AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key) AS alive,
       (SELECT count(*) FROM dagapp.dag_jobs AS j
        WHERE j.owner_id = i.instance_id AND j.status IN ('pending', 'running')) AS owned_jobs
FROM dagapp.dag_instances AS i
ORDER BY i.role, i.started_at;

-- name: stuck_jobs
-- Jobs that have not changed for long, are neither paused nor parked, and have no waiting or leased message.
SELECT j.job_id, j.workflow_id, extract(epoch FROM now() - j.updated_at)::float8 AS quiet_seconds
FROM dagapp.dag_jobs AS j
WHERE j.status IN ('pending', 'running') AND j.paused_at IS NULL AND j.parked_at IS NULL
  AND j.updated_at < now() - make_interval(secs => %(quiet_seconds)s)
  AND NOT EXISTS (SELECT FROM dagapp.dag_queue AS q WHERE q.body ->> 'job_id' = j.job_id)
ORDER BY j.updated_at
LIMIT %(sample)s;

-- name: database_bytes
SELECT pg_database_size(current_database()) AS bytes;

-- name: clock
SELECT clock_timestamp() AS now;

-- name: connections
SELECT application_name AS application, count(*) AS sessions
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
GROUP BY application_name
ORDER BY application_name;

-- name: horizon
-- The causes that keep dead rows from being vacuumed, the oldest first: open transactions, prepared ones, and
-- replication slots. Only members of pg_read_all_stats see the times of other roles' sessions; everybody sees how many
-- transactions have begun since.
SELECT holder.kind, holder.name, holder.seconds, holder.transactions
FROM (
    SELECT 'session' AS kind,
           format('process %%s of %%s (%%s)', pid, coalesce(usename, 'nobody'),
                  coalesce(nullif(application_name, ''), backend_type)) AS name,
           extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
           greatest(age(backend_xmin), age(backend_xid)) AS transactions
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND backend_type NOT LIKE 'autovacuum%%'
    UNION ALL
    SELECT 'prepared', gid, extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
    FROM pg_prepared_xacts
    WHERE database = current_database()
    UNION ALL
    SELECT 'slot', slot_name, NULL, greatest(age(xmin), age(catalog_xmin))
    FROM pg_replication_slots
    WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
) AS holder
ORDER BY holder.transactions DESC NULLS LAST
LIMIT %(sample)s;
