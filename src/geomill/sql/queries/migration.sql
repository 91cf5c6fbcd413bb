-- Statements of the migration, besides those about the live schema.

-- name: read_committed
-- Each statement must see what another process has committed while this one waited for the lock.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: lock
SELECT pg_advisory_xact_lock(%(key)s)

-- name: lock_timeout
SELECT set_config('lock_timeout', %(milliseconds)s::text || 'ms', true)

-- name: lock_holders
SELECT a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) AS name, a.state
FROM pg_stat_activity a
WHERE a.pid <> pg_backend_pid()
  AND EXISTS (
      SELECT FROM pg_locks l
      JOIN pg_class c ON c.oid = l.relation
      JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE l.pid = a.pid AND l.granted AND n.nspname = ANY(%(schemas)s)
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  )
ORDER BY a.pid

-- name: extensions
SELECT name, default_version AS available, installed_version AS installed
FROM pg_available_extensions
WHERE name = ANY(%(names)s)

-- name: fingerprint
SELECT obj_description(n.oid, 'pg_namespace'), pg_has_role(n.nspowner, 'USAGE')
FROM pg_namespace AS n
WHERE n.nspname = 'dagapp'

-- name: set_fingerprint
COMMENT ON SCHEMA dagapp IS {fingerprint}

-- name: drop_plans
DEALLOCATE ALL

-- name: has_rows
SELECT EXISTS (SELECT FROM {table})

-- name: pgstac_there
SELECT to_regclass('pgstac.migrations') IS NOT NULL;

-- name: pgstac_version
SELECT version FROM pgstac.migrations ORDER BY datetime DESC, version DESC LIMIT 1;

-- name: pgstac_indexed
SELECT to_regclass('pgstac.geomill_public') IS NOT NULL;

-- name: index_pgstac
-- Indexes each partition by the properties that decide who sees an item: the newest public items, and the platform.
CREATE INDEX IF NOT EXISTS geomill_public ON pgstac.items (datetime DESC, end_datetime)
    WHERE private = '{"public": true}';
SELECT pgstac.upsert_queryable(
    'geomill:platform', '{"title": "Whose it is", "type": "string"}', 'to_text', 'BTREE'
);
SELECT pgstac.upsert_queryable(
    'geomill:public', '{"title": "Whether anybody may see it", "type": "boolean"}', 'to_text', NULL
);

-- name: create_database
CREATE DATABASE {name};
