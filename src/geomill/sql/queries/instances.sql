-- The processes of ours that live. Each holds an advisory lock on its own session while it does.

-- name: register
INSERT INTO dagapp.dag_instances (instance_id, role, hostname, pid, version, queues, lock_key)
VALUES (%(instance_id)s, %(role)s, %(hostname)s, %(pid)s, %(version)s, %(queues)s::jsonb, %(lock_key)s)
ON CONFLICT (instance_id) DO UPDATE SET heartbeat_at = now();

-- name: hold
SELECT pg_try_advisory_lock(%(lock_key)s) AS held;

-- name: beat
UPDATE dagapp.dag_instances SET heartbeat_at = now() WHERE instance_id = %(instance_id)s RETURNING instance_id;

-- name: remove
DELETE FROM dagapp.dag_instances WHERE instance_id = %(instance_id)s;

-- name: all
SELECT * FROM dagapp.dag_instances ORDER BY role, started_at;

-- name: dead
-- Those whose lock is free: their session is gone, and so are they.
SELECT i.*
FROM dagapp.dag_instances AS i
WHERE NOT EXISTS (
    SELECT
    FROM pg_locks AS l
    WHERE l.locktype = 'advisory'
      AND l.granted
      AND l.objsubid = 1
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key
);

-- name: forget
DELETE FROM dagapp.dag_instances WHERE instance_id = ANY(%(instance_ids)s);
