-- Leftovers: revisions whose data is no longer needed.

-- name: due
-- The next revisions whose data to delete. A time of null means never.
SELECT c.asset_id, c.revision, c.job_id, c.ended_at, c.outputs IS NOT NULL AS completed, (
           SELECT least(sum(least(greatest((file ->> 'size')::numeric, 0), 1e15)), 1e18)::bigint
           FROM jsonb_array_elements(CASE WHEN jsonb_typeof(c.outputs -> 'files') = 'array'
                                          THEN c.outputs -> 'files' ELSE '[]' END) AS file
           WHERE jsonb_typeof(file -> 'size') = 'number' AND file ->> 'path' LIKE '%%/\_r' || c.revision || '/%%'
       ) AS bytes
FROM (
    SELECT r.asset_id, r.revision, r.job_id, r.superseded_at AS ended_at, r.outputs
    FROM app.asset_revisions AS r
    WHERE r.superseded_at < now() - make_interval(
              secs => CASE WHEN r.outputs IS NULL THEN %(failed)s::float8 ELSE %(completed)s::float8 END)
    UNION ALL
    SELECT a.asset_id, a.revision, a.current_job_id, a.updated_at, NULL::jsonb
    FROM app.geospatial_assets AS a
    WHERE a.processing_status = 'failed' AND a.updated_at < now() - make_interval(secs => %(failed)s::float8)
) AS c
WHERE NOT EXISTS (SELECT FROM app.asset_leftovers AS l
                  WHERE l.asset_id = c.asset_id AND l.revision = c.revision
                    AND l.job_id IS NOT DISTINCT FROM c.job_id)
  AND app.is_leftover(c.asset_id, c.revision, now() - make_interval(secs => %(failed)s::float8),
                      now() - make_interval(secs => %(completed)s::float8))
ORDER BY c.ended_at
LIMIT %(limit)s;

-- name: hold
-- Locks the asset, if the revision is still a leftover. Decisions about it wait until the transaction ends.
SELECT a.blob_stem, r.outputs IS NOT NULL AS completed
FROM app.geospatial_assets AS a
LEFT JOIN app.asset_revisions AS r ON r.asset_id = a.asset_id AND r.revision = %(revision)s
WHERE a.asset_id = %(asset_id)s
  AND app.is_leftover(a.asset_id, %(revision)s, now() - make_interval(secs => %(failed)s::float8),
                      now() - make_interval(secs => %(completed)s::float8))
FOR SHARE OF a;

-- name: alone
-- Whether no other orchestrator deletes leftovers of this asset.
SELECT pg_try_advisory_xact_lock(hashtextextended('leftovers of ' || %(asset_id)s, 0)) AS alone;

-- columns: leftover of app.asset_leftovers without deleted_at

-- name: note
INSERT INTO app.asset_leftovers ({columns of leftover})
VALUES ({values of leftover})
ON CONFLICT (asset_id, revision) DO UPDATE SET job_id = EXCLUDED.job_id, deleted_at = now();

-- name: drop_tables
SELECT app.drop_leftover_tables(%(asset_id)s, %(revision)s) AS dropped;

-- name: settle
-- The catalogue must change its links to earlier versions.
INSERT INTO catalogue.pending (asset_id, reason, withheld)
VALUES (%(asset_id)s, 'the data of an earlier revision was deleted', false)
ON CONFLICT (asset_id) DO UPDATE SET due_at = now();

-- name: deleted
-- Whether the data of a revision was deleted.
SELECT EXISTS (
    SELECT FROM app.asset_leftovers AS l
    JOIN app.asset_revisions AS r ON r.asset_id = l.asset_id AND r.revision = l.revision
    WHERE l.asset_id = %(asset_id)s AND l.revision = %(revision)s AND l.job_id IS NOT DISTINCT FROM r.job_id
) AS deleted;
