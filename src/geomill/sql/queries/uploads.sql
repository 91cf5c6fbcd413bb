-- Uploads. A writer holds a lease on the row: only under its token, and where it began, does it move the upload on.

-- name: serialise
-- Lets uploads of one platform be opened one after the other, so that its limits hold.
SELECT pg_advisory_xact_lock(hashtextextended('uploads of ' || %(platform_id)s, 0));

-- name: open_figures
SELECT count(*) AS uploads, coalesce(sum(coalesce(length, received_bytes)), 0)::bigint AS bytes
FROM app.uploads
WHERE platform_id = %(platform_id)s AND status = 'receiving';

-- name: create
INSERT INTO app.uploads ({columns of new app.uploads})
VALUES ({values of new app.uploads})
ON CONFLICT (container_name, file_name) WHERE status <> 'failed' DO NOTHING
RETURNING {columns of app.uploads};

-- name: get
SELECT {columns of app.uploads} FROM app.uploads WHERE upload_id = %(upload_id)s;

-- name: page
-- The newest first, after the last one of the page before.
SELECT {columns of app.uploads}
FROM app.uploads
WHERE (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
  AND (%(status)s::text IS NULL OR status = %(status)s::app.upload_status)
  AND (%(sha256)s::text IS NULL OR coalesce(sha256, expected_sha256) = %(sha256)s)
  AND (%(file_name)s::text IS NULL OR file_name = %(file_name)s)
  AND (%(before)s::timestamptz IS NULL OR (created_at, upload_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY created_at DESC, upload_id DESC
LIMIT %(limit)s;

-- name: lease
-- Takes the right to write, unless somebody has it.
UPDATE app.uploads SET writer = %(writer)s, writer_until = now() + make_interval(secs => %(seconds)s::float8)
WHERE upload_id = %(upload_id)s AND status = 'receiving' AND (writer IS NULL OR writer_until < now())
RETURNING {columns of app.uploads};

-- name: renew
UPDATE app.uploads SET writer_until = now() + make_interval(secs => %(seconds)s::float8)
WHERE upload_id = %(upload_id)s AND writer = %(writer)s AND status = 'receiving'
RETURNING upload_id;

-- name: release
UPDATE app.uploads SET writer = NULL, writer_until = NULL
WHERE upload_id = %(upload_id)s AND writer = %(writer)s;

-- name: save
-- Moves the upload on by bytes that are safe in the store.
WITH moved AS (
    UPDATE app.uploads
    SET received_bytes = %(end)s, updated_at = now(),
        writer_until = now() + make_interval(secs => %(seconds)s::float8)
    WHERE upload_id = %(upload_id)s AND writer = %(writer)s AND status = 'receiving' AND received_bytes = %(begin)s
    RETURNING upload_id
), kept AS (
    INSERT INTO app.upload_parts (upload_id, begin_byte, size, object_path)
    SELECT moved.upload_id, part.begin_byte, part.size, part.object_path
    FROM moved
    CROSS JOIN unnest(%(begins)s::bigint[], %(sizes)s::bigint[], %(paths)s::text[]) AS part (begin_byte, size, object_path)
)
SELECT upload_id FROM moved;

-- name: parts
SELECT begin_byte, size, object_path FROM app.upload_parts WHERE upload_id = %(upload_id)s ORDER BY begin_byte;

-- name: complete
UPDATE app.uploads
SET received_bytes = %(length)s, length = %(length)s, status = 'complete', sha256 = %(sha256)s, completed_at = now(),
    updated_at = now(), writer = NULL, writer_until = NULL, error = NULL
WHERE upload_id = %(upload_id)s AND writer = %(writer)s AND status = 'receiving'
RETURNING {columns of app.uploads};

-- name: delete_parts
DELETE FROM app.upload_parts WHERE upload_id = %(upload_id)s;

-- name: fail
UPDATE app.uploads SET status = 'failed', error = %(error)s, updated_at = now(), writer = NULL, writer_until = NULL
WHERE upload_id = %(upload_id)s AND writer = %(writer)s AND status = 'receiving'
RETURNING upload_id;

-- name: lease_any
-- Takes the right to remove an upload, whatever its status.
UPDATE app.uploads SET writer = %(writer)s, writer_until = now() + make_interval(secs => %(seconds)s::float8)
WHERE upload_id = %(upload_id)s AND (writer IS NULL OR writer_until < now())
RETURNING {columns of app.uploads};

-- name: remove
DELETE FROM app.uploads WHERE upload_id = %(upload_id)s AND writer = %(writer)s;

-- name: needed_by
-- A request that still reads the file of an upload.
SELECT request_id
FROM app.platform_requests
WHERE file_names ? %(file_name)s AND container_name = %(container_name)s AND status IN ('accepted', 'processing')
LIMIT 1;

-- name: due
-- The next uploads to remove. An age of null means never.
SELECT {columns of app.uploads as u}
FROM app.uploads AS u
WHERE (u.writer IS NULL OR u.writer_until < now())
  AND u.updated_at < now() - make_interval(
          secs => least(%(unfinished)s::float8, %(unused)s::float8, %(used)s::float8))
  AND CASE
      WHEN u.status <> 'complete' THEN u.updated_at < now() - make_interval(secs => %(unfinished)s::float8)
      WHEN NOT EXISTS (SELECT FROM app.platform_requests AS r
                       WHERE r.file_names ? u.file_name AND r.container_name = u.container_name)
          THEN u.updated_at < now() - make_interval(secs => %(unused)s::float8)
      ELSE u.updated_at < now() - make_interval(secs => %(used)s::float8)
           AND NOT EXISTS (
               SELECT FROM app.platform_requests AS r
               JOIN app.geospatial_assets AS a ON a.asset_id = r.asset_id
               WHERE r.file_names ? u.file_name AND r.container_name = u.container_name
                 AND (r.status IN ('accepted', 'processing')
                      OR r.updated_at >= now() - make_interval(secs => %(used)s::float8)
                      OR (r.status = 'failed' AND r.request_id = a.last_request_id AND a.deleted_at IS NULL)))
      END
ORDER BY u.updated_at
LIMIT %(limit)s;

-- name: claim
-- Takes uploads to fetch from their URLs, so that no other orchestrator does. The next attempt is later.
UPDATE app.uploads AS u
SET attempts = u.attempts + 1,
    due_at = now() + make_interval(secs => least(5 * 2 ^ least(u.attempts, 10), 600)::float8)
FROM (
    SELECT upload_id
    FROM app.uploads
    WHERE source_url IS NOT NULL AND status = 'receiving' AND due_at <= now()
      AND (writer IS NULL OR writer_until < now())
    ORDER BY due_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) AS chosen
WHERE u.upload_id = chosen.upload_id
RETURNING {columns of app.uploads as u};

-- name: learn
-- Notes length and ETag that the server of a URL has told.
UPDATE app.uploads SET length = %(length)s, source_etag = %(etag)s
WHERE upload_id = %(upload_id)s AND status = 'receiving' AND (writer IS NULL OR writer_until < now())
RETURNING {columns of app.uploads};

-- name: restart
-- Begins again, because the server of a URL cannot continue, or has another file now.
UPDATE app.uploads SET received_bytes = 0, length = NULL
WHERE upload_id = %(upload_id)s AND status = 'receiving' AND (writer IS NULL OR writer_until < now());

-- name: progressed
-- An attempt that brought bytes was not in vain.
UPDATE app.uploads SET attempts = 0 WHERE upload_id = %(upload_id)s AND status = 'receiving';

-- name: note_error
-- Notes why an attempt failed. The last one ends the upload.
UPDATE app.uploads
SET error = %(error)s, updated_at = CASE WHEN %(final)s THEN now() ELSE updated_at END,
    status = CASE WHEN %(final)s THEN 'failed'::app.upload_status ELSE status END
WHERE upload_id = %(upload_id)s AND status = 'receiving' AND (writer IS NULL OR writer_until < now());
