-- Extracts: files that callers ordered. An extract is there as long as its revision is: a withdrawal, a deletion or the end
-- of its time ends it at once for every caller, and an orchestrator deletes the file later.

-- name: serialise
-- Lets extracts be ordered one after the other, so that their limits hold.
SELECT pg_advisory_xact_lock(hashtextextended('extracts', 0));

-- name: figures
-- What counts against the limits. A file that is not written yet counts with the most that it may have.
SELECT count(*) FILTER (WHERE e.ordered_by = %(ordered_by)s) AS extracts,
       coalesce(sum(CASE WHEN j.status = 'completed' THEN (j.result_data ->> 'size')::bigint
                         WHEN j.completed_at IS NOT NULL THEN 0 ELSE e.most_bytes END), 0)::bigint AS bytes
FROM app.extracts AS e
LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = e.job_id;

-- name: same
-- The same order of the same caller, if it has not failed.
SELECT e.extract_id
FROM app.extracts AS e
LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = e.job_id
WHERE e.ordered_by = %(ordered_by)s AND e.asset_id = %(asset_id)s AND e.revision = %(revision)s
  AND e.withdrawn_through = %(withdrawn_through)s AND e.work = %(work)s::jsonb
  AND NOT e.removing AND e.expires_at > now() AND coalesce(j.status NOT IN ('failed', 'cancelled'), true)
ORDER BY e.created_at DESC
LIMIT 1;

-- name: create
INSERT INTO app.extracts ({columns of new app.extracts}, expires_at)
VALUES ({values of new app.extracts}, now() + make_interval(secs => %(keep_seconds)s::float8));

-- name: get
-- An extract that is there, with the facts that say who may see it, and with its job.
SELECT {columns of app.extracts as e}, a.platform_id,
       coalesce(a.public_revision = e.revision, false) AS public,
       coalesce(a.served_revision = e.revision, false) AS newest,
       j.status, j.result_data AS result, j.error_message AS error
FROM app.extracts AS e
JOIN app.geospatial_assets AS a ON a.asset_id = e.asset_id
LEFT JOIN app.asset_revisions AS r ON r.asset_id = e.asset_id AND r.revision = e.revision
LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = e.job_id
WHERE e.extract_id = %(extract_id)s AND e.asset_id = %(asset_id)s AND NOT e.removing AND e.expires_at > now()
  AND a.deleted_at IS NULL AND e.revision > a.data_deleted_through AND a.withdrawn_through = e.withdrawn_through
  AND NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                  WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                    AND l.job_id IS NOT DISTINCT FROM r.job_id);

-- name: work
-- The work of a job's extract, for the job itself.
SELECT e.extract_id, e.file_name, e.media_type, e.work, e.most_bytes
FROM app.extracts AS e
WHERE e.extract_id = %(extract_id)s AND e.job_id = %(job_id)s AND NOT e.removing;

-- name: take_due
-- Takes extracts whose file is deleted next: their time is over, or their revision is gone, or their job failed some time
-- ago. One that another orchestrator has taken is taken again, because that one may have died.
UPDATE app.extracts AS e SET removing = true
FROM (
    SELECT d.extract_id
    FROM app.extracts AS d
    JOIN app.geospatial_assets AS a ON a.asset_id = d.asset_id
    LEFT JOIN app.asset_revisions AS r ON r.asset_id = d.asset_id AND r.revision = d.revision
    LEFT JOIN dagapp.dag_jobs AS j ON j.job_id = d.job_id
    WHERE d.removing OR d.expires_at <= now()
       OR a.deleted_at IS NOT NULL OR d.revision <= a.data_deleted_through OR a.withdrawn_through <> d.withdrawn_through
       OR EXISTS (SELECT FROM app.asset_leftovers AS l
                  WHERE l.asset_id = r.asset_id AND l.revision = r.revision
                    AND l.job_id IS NOT DISTINCT FROM r.job_id)
       OR (j.status IN ('failed', 'cancelled')
           AND j.completed_at < now() - make_interval(secs => %(failed_seconds)s::float8))
    ORDER BY d.expires_at
    LIMIT %(limit)s
    FOR UPDATE OF d SKIP LOCKED
) AS due
WHERE e.extract_id = due.extract_id
RETURNING {columns of app.extracts as e};

-- name: remove
DELETE FROM app.extracts WHERE extract_id = ANY (%(extract_ids)s::text[]);
