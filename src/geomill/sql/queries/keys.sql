-- API keys. The secret itself is never here.

-- columns: new_key of app.api_keys without created_at, expires_at, revoked_at, last_used_at

-- name: create
INSERT INTO app.api_keys ({columns of new_key}, expires_at)
VALUES ({values of new_key}, now() + make_interval(secs => %(expires_seconds)s::float8))
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING {columns of app.api_keys};

-- name: find_many
SELECT {columns of app.api_keys}, expires_at <= now() IS TRUE AS expired FROM app.api_keys WHERE key_id = ANY(%(key_ids)s);

-- name: all
SELECT {columns of app.api_keys} FROM app.api_keys ORDER BY created_at, key_id;

-- name: page
-- The newest first, after the last one of the page before.
SELECT {columns of app.api_keys}
FROM app.api_keys
WHERE (%(revoked)s::boolean OR revoked_at IS NULL)
  AND (%(before)s::timestamptz IS NULL OR (created_at, key_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY created_at DESC, key_id DESC
LIMIT %(limit)s;

-- name: revoke_id
-- Revokes a key by its id alone: another key may have that id as its name.
UPDATE app.api_keys SET revoked_at = now()
WHERE key_id = %(key_id)s AND revoked_at IS NULL
RETURNING {columns of app.api_keys};

-- name: revoke
UPDATE app.api_keys SET revoked_at = now()
WHERE revoked_at IS NULL AND (key_id = %(key)s OR name = %(key)s)
RETURNING {columns of app.api_keys};

-- name: read_write
SET TRANSACTION READ WRITE;

-- name: used
UPDATE app.api_keys SET last_used_at = now()
WHERE key_id = ANY(%(key_ids)s) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: lock
LOCK TABLE app.api_keys IN SHARE ROW EXCLUSIVE MODE;
