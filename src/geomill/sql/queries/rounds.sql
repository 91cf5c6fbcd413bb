-- The owner's write of one round: everything that its decisions change, for all its jobs, in one statement.
--
-- The parts below are joined to `WITH fence AS (…), taken AS (…), … SELECT held FROM fence`: most rounds need few of
-- them, and a part that has nothing to do costs as much as one that has. Nothing is written unless every job of the
-- round is still ours: the rows are locked first, and all else hangs on it. Why keys are asked for by `ANY (ARRAY[…])`
-- stands at the top of queue.sql.

-- name: limit_locks
-- How long this session waits for a locked row.
SELECT set_config('lock_timeout', %(milliseconds)s, false);

-- name: fence
SELECT count(*) = cardinality(%(job_ids)b::text[]) AS held
FROM (
    SELECT
    FROM dagapp.dag_jobs AS j
    JOIN unnest(%(job_ids)b::text[], %(epochs)b::bigint[]) AS mine (job_id, epoch)
        ON j.job_id = ANY (ARRAY[mine.job_id]) AND mine.epoch = j.owner_epoch
    WHERE j.owner_id = %(owner_id)s
    FOR NO KEY UPDATE OF j
) AS locked

-- name: unclaimed
-- The fence of a claim: the submissions are still in the queue and are locked.
SELECT count(*) = cardinality(%(submissions)b::bigint[]) AS held
FROM (
    SELECT
    FROM dagapp.dag_queue AS q
    JOIN unnest(%(submissions)b::bigint[]) AS s (sequence) ON q.sequence = ANY (ARRAY[s.sequence])
    WHERE coalesce(q.lease_token, 0) = 0
    FOR UPDATE OF q SKIP LOCKED
) AS locked

-- name: claimed
DELETE FROM dagapp.dag_queue AS q
USING fence, unnest(%(submissions)b::bigint[]) AS s (sequence)
WHERE fence.held AND q.sequence = ANY (ARRAY[s.sequence])

-- name: open_fence
-- The fence for new jobs. They have no owner yet, so no other orchestrator can take them.
SELECT true AS held

-- name: created
INSERT INTO dagapp.dag_jobs (
    {columns of new dagapp.dag_jobs}, owner_epoch, owner_heartbeat_at, started_at, completed_at
)
SELECT
    {columns of new dagapp.dag_jobs as n}, 1, now(), CASE WHEN n.status <> 'pending' THEN now() END,
    CASE WHEN n.status NOT IN ('pending', 'running') THEN now() END
FROM fence, json_to_recordset(%(created)s::json) AS n ({record of new dagapp.dag_jobs})
WHERE fence.held

-- name: taken
DELETE FROM dagapp.dag_inbox AS i
USING fence, (
    SELECT %(owner_id)s::text AS owner_id, r.sequence
    FROM unnest(%(reports)b::bigint[]) AS r (sequence)
    OFFSET 0
) AS t
WHERE fence.held AND i.owner_id = ANY (ARRAY[t.owner_id]) AND i.sequence = t.sequence

-- columns: node of dagapp.dag_node_states: job_id, node_id, item_index, status, task_id, attempt, retry_count, output,
--   error_message, not_before, items_total, items_sent

-- name: inserted
INSERT INTO dagapp.dag_node_states ({columns of node}, dispatched_at, completed_at)
SELECT {columns of node as u},
       CASE WHEN u.status IN ('dispatched', 'running', 'cancelled') THEN now() END,
       CASE WHEN u.status IN ('completed', 'failed', 'skipped', 'cancelled') THEN now() END
FROM fence, json_to_recordset(%(inserted)s::json) AS u ({record of node})
WHERE fence.held

-- name: updated
UPDATE dagapp.dag_node_states AS n
SET status = u.status,
    task_id = u.task_id,
    attempt = u.attempt,
    retry_count = u.retry_count,
    output = u.output,
    error_message = u.error_message,
    not_before = u.not_before,
    worker_id = coalesce(u.worker_id, n.worker_id),
    items_total = coalesce(u.items_total, n.items_total),
    items_sent = coalesce(u.items_sent, n.items_sent),
    dispatched_at = CASE
        WHEN u.status = 'dispatched' THEN now()
        WHEN u.status IN ('running', 'cancelled') THEN coalesce(n.dispatched_at, now())
        ELSE n.dispatched_at
    END,
    started_at = CASE WHEN u.status = 'dispatched' THEN NULL ELSE coalesce(u.started_at, n.started_at) END,
    completed_at = CASE WHEN u.status IN ('completed', 'failed', 'skipped', 'cancelled') THEN now() END,
    updated_at = now()
FROM fence, json_to_recordset(%(updated)s::json) AS u (
    {record of node}, worker_id text, started_at timestamptz
)
WHERE fence.held AND n.job_id = ANY (ARRAY[u.job_id]) AND n.node_id = u.node_id AND n.item_index = u.item_index

-- columns: item of dagapp.dag_node_states: job_id, node_id, item_index, status, task_id, attempt, retry_count,
--   error_message, not_before, worker_id

-- name: items
-- Items of fan-outs that run for a while, failed, wait, or are cancelled. Some of them have no row yet.
INSERT INTO dagapp.dag_node_states AS n ({columns of item}, dispatched_at, started_at, completed_at)
SELECT {columns of item as u},
       CASE WHEN u.status IN ('dispatched', 'running', 'cancelled') THEN coalesce(u.dispatched_at, now())
            ELSE u.dispatched_at END,
       CASE WHEN u.status <> 'dispatched' THEN u.started_at END,
       CASE WHEN u.status IN ('completed', 'failed', 'skipped', 'cancelled') THEN now() END
FROM fence, json_to_recordset(%(items)s::json) AS u (
    {record of item}, dispatched_at timestamptz, started_at timestamptz
)
WHERE fence.held
ON CONFLICT (job_id, node_id, item_index) DO UPDATE
SET status = EXCLUDED.status,
    task_id = EXCLUDED.task_id,
    attempt = EXCLUDED.attempt,
    retry_count = EXCLUDED.retry_count,
    error_message = EXCLUDED.error_message,
    not_before = EXCLUDED.not_before,
    worker_id = coalesce(EXCLUDED.worker_id, n.worker_id),
    dispatched_at = CASE
        WHEN EXCLUDED.status = 'dispatched' THEN EXCLUDED.dispatched_at
        ELSE coalesce(n.dispatched_at, EXCLUDED.dispatched_at)
    END,
    started_at = CASE WHEN EXCLUDED.status <> 'dispatched' THEN coalesce(EXCLUDED.started_at, n.started_at) END,
    completed_at = EXCLUDED.completed_at,
    updated_at = now()

-- name: completed
-- Items that completed without a row. They differ only in their index.
INSERT INTO dagapp.dag_node_states (
    job_id, node_id, item_index, status, task_id, attempt, worker_id, dispatched_at, started_at, completed_at
)
SELECT c.job_id, c.node_id, item.item_index, 'completed', c.before_index || item.item_index || c.after_index, c.attempt,
       c.worker_id, coalesce(c.dispatched_at, c.started_at), c.started_at, now()
FROM fence, json_to_recordset(%(completed)s::json) AS c (
    job_id text, node_id text, attempt bigint, before_index text, after_index text, worker_id text,
    dispatched_at timestamptz, started_at timestamptz, items integer[]
), unnest(c.items) AS item (item_index)
WHERE fence.held

-- name: spread
-- New items of a fan-out. Each becomes a message, and the row of the fan-out counts them.
INSERT INTO dagapp.dag_queue ({columns of message}, expires_at)
SELECT s.queue_name, one.task_id,
       s.body || jsonb_build_object('task_id', one.task_id, 'item_index', item.index, 'params', item.params),
       s.priority, s.tenant, now() + make_interval(secs => s.ttl_seconds)
FROM fence, json_to_recordset(%(spread)s::json) AS s (
    queue_name text, priority smallint, tenant text, ttl_seconds float8, before_index text, after_index text, body jsonb,
    items integer[], params jsonb
), ROWS FROM (unnest(s.items), jsonb_array_elements(s.params)) AS item (index, params),
LATERAL (SELECT s.before_index || item.index || s.after_index AS task_id) AS one
WHERE fence.held
ON CONFLICT (queue_name, message_id) DO NOTHING

-- columns: message of dagapp.dag_queue: queue_name, message_id, body, priority, tenant

-- name: sent
INSERT INTO dagapp.dag_queue ({columns of message}, visible_at, expires_at)
SELECT {columns of message as m}, coalesce(m.visible_at, now()),
       coalesce(m.visible_at, now()) + make_interval(secs => m.ttl_seconds)
FROM fence, json_to_recordset(%(sent)s::json) AS m (
    {record of message}, visible_at timestamptz, ttl_seconds float8
)
WHERE fence.held
ON CONFLICT (queue_name, message_id) DO NOTHING

-- name: withdrawn
DELETE FROM dagapp.dag_queue AS q
USING fence, unnest(%(withdrawn_queues)b::text[], %(withdrawn_ids)b::text[]) AS w (queue_name, message_id)
WHERE fence.held AND q.queue_name = ANY (ARRAY[w.queue_name]) AND q.message_id = w.message_id

-- name: noted
INSERT INTO dagapp.dag_job_events (job_id, node_id, item_index, event_type, event_status, event_data)
SELECT e.job_id, e.node_id, e.item_index, e.type, e.status, coalesce(e.data, '{}'::jsonb)
FROM fence, json_to_recordset(%(noted)s::json) AS e (
    job_id text, node_id text, item_index integer, type dagapp.event_type, status dagapp.event_status, data jsonb
)
WHERE fence.held

-- name: decided
UPDATE dagapp.dag_jobs AS j
SET status = u.status,
    result_data = u.result,
    error_message = u.error,
    failed_node_id = u.failed_node,
    started_at = coalesce(j.started_at, now()),
    completed_at = CASE WHEN u.status IN ('completed', 'failed', 'cancelled') THEN now() END,
    paused_at = CASE WHEN u.paused IS NULL THEN j.paused_at WHEN u.paused THEN coalesce(j.paused_at, now()) END,
    node_summary = coalesce(u.summary, j.node_summary),
    updated_at = now()
FROM fence, json_to_recordset(%(decided)s::json) AS u (
    job_id text, status dagapp.job_status, result jsonb, error text, failed_node text, paused boolean, summary jsonb
)
WHERE fence.held AND j.job_id = ANY (ARRAY[u.job_id])

-- name: summarised
-- Never together with the verdict: one statement cannot update a row twice.
UPDATE dagapp.dag_jobs AS j
SET node_summary = u.summary, updated_at = now()
FROM fence, json_to_recordset(%(summarised)s::json) AS u (job_id text, summary jsonb)
WHERE fence.held AND j.job_id = ANY (ARRAY[u.job_id])

-- name: called
-- Notifies in the commit, only for a single report, because NOTIFY makes commits wait for each other. The statement must
-- read this part, or PostgreSQL does not run it.
SELECT count(pg_notify(channel, payload)) AS called
FROM fence, unnest(%(channels)b::text[], %(payloads)b::text[]) AS call (channel, payload)
WHERE fence.held
