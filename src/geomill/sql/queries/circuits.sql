-- Circuits of handlers: one row for each handler that has failed, shared by all workers.

-- name: read
SELECT {columns of dagapp.dag_circuits} FROM dagapp.dag_circuits ORDER BY handler;

-- columns: failure of dagapp.dag_circuits without opened_at, probe_at, updated_at

-- name: failed
-- Counts consecutive failures. A failure with another error code starts the count again. An open circuit stays open.
-- Returns whether the circuit has opened now.
INSERT INTO dagapp.dag_circuits AS c ({columns of failure}, opened_at, probe_at)
SELECT {values of failure},
       CASE WHEN %(failures)s >= %(threshold)s THEN now() END,
       CASE WHEN %(failures)s >= %(threshold)s THEN now() + make_interval(secs => %(open_seconds)s) END
ON CONFLICT (handler) DO UPDATE
SET failures = EXCLUDED.failures + CASE WHEN c.error_code = EXCLUDED.error_code THEN c.failures ELSE 0 END,
    error_code = EXCLUDED.error_code,
    error_message = EXCLUDED.error_message,
    opened_at = coalesce(c.opened_at, CASE
        WHEN EXCLUDED.failures + CASE WHEN c.error_code = EXCLUDED.error_code THEN c.failures ELSE 0 END
             >= %(threshold)s
        THEN now() END),
    probe_at = coalesce(c.probe_at, CASE
        WHEN EXCLUDED.failures + CASE WHEN c.error_code = EXCLUDED.error_code THEN c.failures ELSE 0 END
             >= %(threshold)s
        THEN now() + make_interval(secs => %(open_seconds)s) END),
    updated_at = now()
RETURNING opened_at = now() AS opened;

-- name: succeeded
UPDATE dagapp.dag_circuits
SET failures = 0, opened_at = NULL, probe_at = NULL, updated_at = now()
WHERE handler = %(handler)s AND failures > 0;

-- name: probe
-- A caller that gets a row lets one task through. The next caller gets one after `open_seconds`.
UPDATE dagapp.dag_circuits
SET probe_at = now() + make_interval(secs => %(open_seconds)s), updated_at = now()
WHERE handler = %(handler)s AND probe_at <= now()
RETURNING handler;

-- name: close
-- An operator's act: tasks of the handler may begin again, and its failures are counted from zero.
UPDATE dagapp.dag_circuits
SET failures = 0, opened_at = NULL, probe_at = NULL, updated_at = now()
WHERE handler = %(handler)s
RETURNING {columns of dagapp.dag_circuits};
