-- Work orders of partners.

-- name: create
INSERT INTO app.platform_requests ({columns of new app.platform_requests})
VALUES ({values of new app.platform_requests})
RETURNING {columns of app.platform_requests};

-- name: get
SELECT {columns of app.platform_requests} FROM app.platform_requests WHERE request_id = %(request_id)s;

-- name: lock
SELECT {columns of app.platform_requests} FROM app.platform_requests WHERE request_id = %(request_id)s FOR UPDATE;

-- name: by_idempotency_key
SELECT {columns of app.platform_requests}
FROM app.platform_requests
WHERE platform_id = %(platform_id)s AND idempotency_key = %(idempotency_key)s;

-- name: of_asset
SELECT {columns of app.platform_requests} FROM app.platform_requests WHERE asset_id = %(asset_id)s ORDER BY created_at DESC LIMIT %(limit)s;

-- name: failed_finally
-- Whether an error of the failed node is final. Of a fan-out, the items have failed.
SELECT NOT r.retryable AS final
FROM dagapp.dag_node_states AS n
JOIN dagapp.dag_task_results AS r ON r.task_id = n.task_id
WHERE n.job_id = %(job_id)s AND n.node_id = %(node_id)s AND n.status = 'failed'
ORDER BY n.item_index
LIMIT 1;

-- name: supersede
-- Requests that were still open when a newer revision was opened. Their jobs may go on for a moment; they no longer count.
UPDATE app.platform_requests
SET status = 'superseded', updated_at = now()
WHERE asset_id = %(asset_id)s AND status IN ('accepted', 'processing')
RETURNING job_id;

-- name: replace
-- A failed request whose successor for the same revision has other options.
UPDATE app.platform_requests
SET status = 'superseded', updated_at = now()
WHERE request_id = %(request_id)s AND status = 'failed';

-- name: retry
UPDATE app.platform_requests
SET job_id = %(job_id)s, retry_count = retry_count + 1, status = 'accepted', last_error = NULL, updated_at = now()
WHERE request_id = %(request_id)s
RETURNING {columns of app.platform_requests};
