-- Sessions of the console, and sign-in links. The tokens themselves are never here.

-- columns: new_session of app.console_sessions: token_hash, key_id, subject, roles, platform_id, may_name

-- name: begin
-- Begins a session, and deletes some that have ended.
WITH ended AS (
    DELETE FROM app.console_sessions WHERE token_hash IN
        (SELECT token_hash FROM app.console_sessions WHERE expires_at < now() - interval '1 hour' LIMIT 100)
)
INSERT INTO app.console_sessions ({columns of new_session}, begun_at, last_used_at, expires_at)
VALUES ({values of new_session}, now(), now(), now() + make_interval(secs => %(seconds)s::float8))
RETURNING {columns of app.console_sessions};

-- name: create_link
INSERT INTO app.console_sessions ({columns of new_session}, expires_at)
VALUES ({values of new_session}, now() + make_interval(secs => %(seconds)s::float8))
RETURNING {columns of app.console_sessions};

-- name: enter
-- Uses a sign-in link: the row becomes a session with another token, so the link cannot be used again.
UPDATE app.console_sessions AS s
SET token_hash = %(token_hash)s, begun_at = now(), last_used_at = now(),
    expires_at = now() + make_interval(secs => %(seconds)s::float8)
WHERE s.token_hash = %(link_hash)s AND s.begun_at IS NULL AND s.expires_at > now()
  AND (s.key_id IS NULL OR EXISTS (
      SELECT FROM app.api_keys k
      WHERE k.key_id = s.key_id AND k.revoked_at IS NULL AND (k.expires_at > now()) IS NOT FALSE))
RETURNING {columns of app.console_sessions as s};

-- name: find_many
-- The sessions that are valid now, by the token that was shown: the current one, or for a minute the one before.
SELECT shown.hash AS shown_hash, {columns of app.console_sessions as s}
FROM unnest(%(hashes)s::text[]) AS shown(hash)
JOIN app.console_sessions s ON s.token_hash = shown.hash
    OR (s.previous_hash = shown.hash AND s.rotated_at > now() - make_interval(secs => %(grace)s::float8))
LEFT JOIN app.api_keys k ON k.key_id = s.key_id
WHERE s.begun_at IS NOT NULL AND s.expires_at > now()
  AND s.last_used_at > now() - make_interval(secs => %(idle_seconds)s::float8)
  AND (s.key_id IS NULL OR (k.revoked_at IS NULL AND (k.expires_at > now()) IS NOT FALSE));

-- name: rotate
UPDATE app.console_sessions AS s
SET token_hash = %(token_hash)s, previous_hash = s.token_hash, rotated_at = now(), last_used_at = now()
WHERE s.token_hash = %(old_hash)s AND s.begun_at IS NOT NULL AND s.expires_at > now()
RETURNING {columns of app.console_sessions as s};

-- name: end
DELETE FROM app.console_sessions WHERE token_hash = %(hash)s OR previous_hash = %(hash)s;

-- name: used
UPDATE app.console_sessions SET last_used_at = now()
WHERE token_hash = ANY(%(hashes)s) AND last_used_at < now() - interval '1 minute';
