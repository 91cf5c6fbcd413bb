-- Assets. People's decisions are written here; the state of the work follows the job (functions/follow_job.sql).

-- name: serialise
-- Lets submissions of one identity run one after the other, also while there is no row to lock.
SELECT pg_advisory_xact_lock(hashtextextended(%(asset_id)s, 7));

-- name: lock
SELECT {columns of app.geospatial_assets} FROM app.geospatial_assets WHERE asset_id = %(asset_id)s FOR UPDATE;

-- name: get
SELECT {columns of app.geospatial_assets} FROM app.geospatial_assets WHERE asset_id = %(asset_id)s;

-- name: identify
-- Finds the asset and the request for the id of a request, a job or an asset.
SELECT asset_id, request_id, job_id FROM (
    SELECT 1 AS place, r.asset_id, r.request_id, r.job_id
    FROM app.platform_requests AS r WHERE r.request_id = %(id)s
    UNION ALL
    SELECT 2, a.asset_id, a.last_request_id, r.job_id
    FROM app.geospatial_assets AS a LEFT JOIN app.platform_requests AS r ON r.request_id = a.last_request_id
    WHERE a.asset_id = %(id)s
    UNION ALL
    SELECT 3, r.asset_id, r.request_id, r.job_id FROM app.platform_requests AS r WHERE r.job_id = %(id)s
    UNION ALL
    SELECT 4, j.asset_id, j.request_id, j.job_id
    FROM dagapp.dag_jobs AS j WHERE j.job_id = %(id)s AND j.asset_id IS NOT NULL
    UNION ALL
    SELECT 5, a.asset_id, NULL, a.adf_run_id FROM app.geospatial_assets AS a WHERE a.adf_run_id = %(id)s
) AS found
ORDER BY place
LIMIT 1;

-- name: collection
SELECT stac_collection_id
FROM app.asset_collections
WHERE platform_id = %(platform_id)s AND group_ref = %(group_ref)s;

-- columns: new_collection of app.asset_collections without created_at

-- name: create_collection
INSERT INTO app.asset_collections ({columns of new_collection})
VALUES ({values of new_collection})
ON CONFLICT DO NOTHING
RETURNING stac_collection_id;

-- name: create
-- Returns nothing if another asset has one of the names.
INSERT INTO app.geospatial_assets ({columns of new app.geospatial_assets})
VALUES ({values of new app.geospatial_assets})
ON CONFLICT DO NOTHING
RETURNING {columns of app.geospatial_assets};

-- name: log_revision
-- The outputs on the row are those of the revision that is served, which may be an older one.
INSERT INTO app.asset_revisions (
    asset_id, revision, job_id, request_id, workflow_id, workflow_version, processing_status_at_supersession,
    approval_state_at_supersession, clearance_state_at_supersession, reviewer_at_supersession, content_hash, table_name,
    blob_path, outputs, output_file_hash, deleted_at, created_at
)
SELECT asset_id, revision, current_job_id, last_request_id, workflow_id, workflow_version, processing_status,
       approval_state, clearance_state, reviewer,
       CASE WHEN served_revision = revision THEN content_hash END,
       CASE WHEN served_revision = revision THEN table_name END,
       CASE WHEN served_revision = revision THEN blob_path END,
       CASE WHEN served_revision = revision THEN outputs END,
       CASE WHEN served_revision = revision THEN output_file_hash END,
       deleted_at, revision_opened_at
FROM app.geospatial_assets
WHERE asset_id = %(asset_id)s;

-- name: open_revision
-- The old outputs are served until the new job has completed. The public revision stays public until another one is
-- approved. An asset that was revoked or unpublished is not served until its new job has completed.
UPDATE app.geospatial_assets
SET served_revision = CASE WHEN deleted_at IS NULL THEN served_revision END,
    table_name = CASE WHEN deleted_at IS NULL THEN table_name END,
    blob_path = CASE WHEN deleted_at IS NULL THEN blob_path END,
    outputs = CASE WHEN deleted_at IS NULL THEN outputs END,
    content_hash = CASE WHEN deleted_at IS NULL THEN content_hash END,
    source_file_hash = CASE WHEN deleted_at IS NULL THEN source_file_hash END,
    output_file_hash = CASE WHEN deleted_at IS NULL THEN output_file_hash END,
    withdrawn_through = CASE WHEN deleted_at IS NULL THEN withdrawn_through ELSE revision END,
    kept_public_revision = public_revision, revision = revision + 1, revision_opened_at = now(), current_job_id = NULL, processing_status = 'pending',
    processing_started_at = NULL, processing_completed_at = NULL, estimated_completion_at = NULL, last_error = NULL,
    node_summary = NULL, approval_state = 'pending_review', clearance_state = 'uncleared', reviewer = NULL,
    reviewed_on_behalf_of = NULL, reviewed_at = NULL, rejection_reason = NULL, cleared_at = NULL, cleared_by = NULL, made_public_at = NULL,
    made_public_by = NULL, deleted_at = NULL, deleted_by = NULL, proposed_clearance = %(proposed_clearance)s,
    last_request_id = %(last_request_id)s, workflow_id = %(workflow_id)s, priority = %(priority)s, updated_at = now()
WHERE asset_id = %(asset_id)s
RETURNING {columns of app.geospatial_assets};

-- name: await_request
-- The revision waits for another request. Its execution state follows when that request gets its job.
UPDATE app.geospatial_assets SET last_request_id = %(request_id)s, updated_at = now() WHERE asset_id = %(asset_id)s;

-- name: roll_back
-- Opens a new revision with the outputs of an old one.
UPDATE app.geospatial_assets AS a
SET revision = a.revision + 1, revision_opened_at = now(), served_revision = a.revision + 1, current_job_id = o.job_id,
    kept_public_revision = a.public_revision,
    processing_status = 'completed', processing_started_at = NULL, processing_completed_at = now(),
    estimated_completion_at = NULL, last_error = NULL, node_summary = NULL, approval_state = 'pending_review',
    clearance_state = 'uncleared', reviewer = NULL, reviewed_on_behalf_of = NULL, reviewed_at = NULL,
    rejection_reason = NULL, cleared_at = NULL,
    cleared_by = NULL, made_public_at = NULL, made_public_by = NULL, content_hash = o.content_hash,
    source_file_hash = left(o.content_hash, 64), output_file_hash = o.output_file_hash, table_name = o.table_name,
    blob_path = o.blob_path, outputs = o.outputs, warnings = '[]', workflow_id = o.workflow_id,
    workflow_version = o.workflow_version, last_request_id = o.request_id, updated_at = now()
FROM app.asset_revisions AS o
WHERE a.asset_id = %(asset_id)s AND o.asset_id = a.asset_id AND o.revision = %(revision)s
RETURNING {columns of app.geospatial_assets as a};

-- name: decide
UPDATE app.geospatial_assets
SET approval_state = %(approval_state)s, reviewer = %(reviewer)s,
    reviewed_on_behalf_of = %(reviewed_on_behalf_of)s, reviewed_at = %(reviewed_at)s,
    rejection_reason = %(rejection_reason)s, clearance_state = %(clearance_state)s, cleared_at = %(cleared_at)s,
    cleared_by = %(cleared_by)s, made_public_at = %(made_public_at)s, made_public_by = %(made_public_by)s,
    adf_run_id = %(adf_run_id)s, deleted_at = %(deleted_at)s, deleted_by = %(deleted_by)s,
    data_deleted_through = %(data_deleted_through)s, withdrawn_through = %(withdrawn_through)s,
    kept_public_revision = %(kept_public_revision)s, delete_run_id = %(delete_run_id)s, updated_at = now()
WHERE asset_id = %(asset_id)s
RETURNING {columns of app.geospatial_assets};

-- name: any_asset
-- The source of a page without a filter by identifiers.
SELECT {columns of app.geospatial_assets} FROM app.geospatial_assets

-- name: identified_assets
-- The source of a page by identifiers or title. The planner cannot know how many assets have one. If it guesses too high, it
-- reads all assets by date until a page is full. OFFSET makes it read the indexes of both first. `text` and `title` are LIKE
-- patterns for the same words: the first is written as in JSON.
SELECT {columns of app.geospatial_assets}
FROM app.geospatial_assets
WHERE (%(refs)s::jsonb IS NULL OR platform_refs @> %(refs)s::jsonb)
  AND (%(text)s::text IS NULL
       OR lower(jsonb_path_query_array(platform_refs, '$.*')::text) LIKE lower(%(text)s)
       OR lower(outputs #>> '{dataset_metadata,title}') LIKE lower(%(title)s))
OFFSET 0

-- name: page
-- The newest assets first, after the last one of the page before.
SELECT {columns of app.geospatial_assets}
FROM found
WHERE (%(deleted)s::boolean OR deleted_at IS NULL)
  AND (%(platform_id)s::text IS NULL OR platform_id = %(platform_id)s)
  AND (%(data_type)s::app.data_type IS NULL OR data_type = %(data_type)s)
  AND (%(processing_status)s::app.processing_status IS NULL OR processing_status = %(processing_status)s)
  AND (%(approval_state)s::app.approval_state IS NULL OR approval_state = %(approval_state)s)
  AND (%(clearance_state)s::app.clearance_state IS NULL OR clearance_state = %(clearance_state)s)
  AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
  AND (%(before)s::timestamptz IS NULL OR (created_at, asset_id) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY created_at DESC, asset_id DESC
LIMIT %(limit)s;

-- name: waiting_for_review
-- The longest waiting first. Outputs may be large, so only the title of them is read.
SELECT asset_id, platform_id, platform_refs, data_type, stac_item_id, revision, public_revision, proposed_clearance, priority,
       workflow_id, processing_completed_at, warnings, created_at, outputs -> 'dataset_metadata' ->> 'title' AS title
FROM app.geospatial_assets
WHERE approval_state = 'pending_review' AND processing_status = 'completed' AND deleted_at IS NULL
ORDER BY processing_completed_at, asset_id
LIMIT %(limit)s;

-- name: item_ids
-- The ids in the catalogue, by asset.
SELECT asset_id, stac_item_id FROM app.geospatial_assets WHERE asset_id = ANY (%(asset_ids)s::text[]);

-- name: revisions
SELECT {columns of app.asset_revisions} FROM app.asset_revisions WHERE asset_id = %(asset_id)s ORDER BY revision DESC LIMIT %(limit)s;

-- name: revision
SELECT {columns of app.asset_revisions} FROM app.asset_revisions WHERE asset_id = %(asset_id)s AND revision = %(revision)s;

-- name: open_jobs
-- The open jobs that make data of the asset, including those of superseded revisions.
SELECT job_id FROM dagapp.dag_jobs
WHERE asset_id = %(asset_id)s AND purpose = 'process' AND completed_at IS NULL
UNION
SELECT job_id FROM app.platform_requests
WHERE asset_id = %(asset_id)s AND status IN ('accepted', 'processing')
ORDER BY job_id;

-- name: jobs
SELECT {columns of dagapp.dag_jobs} FROM dagapp.dag_jobs WHERE asset_id = %(asset_id)s ORDER BY created_at DESC LIMIT %(limit)s;
