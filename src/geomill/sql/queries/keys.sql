-- API keys. The secret itself is never here.

-- name: create
INSERT INTO app.api_keys (key_id, secret_hash, name, roles, platform_id, created_by, expires_at)
VALUES (
    %(key_id)s, %(secret_hash)s, %(name)s, %(roles)s::jsonb, %(platform_id)s, %(created_by)s,
    now() + make_interval(secs => %(expires_seconds)s::float8)
)
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING {columns of app.api_keys};

-- name: find_many
SELECT {columns of app.api_keys}, expires_at <= now() IS TRUE AS expired FROM app.api_keys WHERE key_id = ANY(%(key_ids)s);

-- name: all
SELECT {columns of app.api_keys} FROM app.api_keys ORDER BY created_at, key_id;

-- name: revoke
UPDATE app.api_keys SET revoked_at = now()
WHERE revoked_at IS NULL AND (key_id = %(wanted)s OR name = %(wanted)s)
RETURNING {columns of app.api_keys};

-- name: read_write
SET TRANSACTION READ WRITE;

-- name: used
UPDATE app.api_keys SET last_used_at = now()
WHERE key_id = ANY(%(key_ids)s) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: lock
LOCK TABLE app.api_keys IN SHARE ROW EXCLUSIVE MODE;
