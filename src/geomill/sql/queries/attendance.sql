-- Queues that nobody serves, and submissions whose workflow no orchestrator knows.

-- name: note
-- Stores which queues nobody serves, and since when. Queues in which a message waits are found by jumping from one name
-- to the next. Queues of foreign messages are left out, because their receivers are unknown. Writes only changes.
WITH RECURSIVE name AS (
    (SELECT q.queue_name FROM dagapp.dag_queue AS q WHERE q.lease_token IS NULL ORDER BY q.queue_name LIMIT 1)
    UNION ALL
    SELECT (SELECT q.queue_name
            FROM dagapp.dag_queue AS q
            WHERE q.lease_token IS NULL AND q.queue_name > name.queue_name
            ORDER BY q.queue_name
            LIMIT 1)
    FROM name
    WHERE name.queue_name IS NOT NULL
), serving AS (
    SELECT i.queues
    FROM dagapp.dag_instances AS i
    WHERE EXISTS (SELECT FROM pg_locks AS l
                  WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key)
), unserved AS MATERIALIZED (
    SELECT name.queue_name
    FROM name
    WHERE name.queue_name IS NOT NULL
      AND NOT EXISTS (SELECT FROM serving WHERE serving.queues ? name.queue_name)
      AND EXISTS (SELECT FROM dagapp.dag_queue AS q
                  WHERE q.queue_name = name.queue_name AND q.lease_token IS NULL AND q.visible_at <= now()
                    AND (q.body ? 'task_id' OR q.body ? 'workflow_id'))
), served AS (
    DELETE FROM dagapp.dag_unserved_queues AS u
    WHERE NOT EXISTS (SELECT FROM unserved WHERE unserved.queue_name = u.queue_name)
), fresh AS (
    INSERT INTO dagapp.dag_unserved_queues (queue_name)
    SELECT queue_name
    FROM unserved
    WHERE NOT EXISTS (SELECT FROM dagapp.dag_unserved_queues AS u WHERE u.queue_name = unserved.queue_name)
    ON CONFLICT (queue_name) DO NOTHING
)
SELECT unserved.queue_name, coalesce(u.since, now()) AS since
FROM unserved
LEFT JOIN dagapp.dag_unserved_queues AS u USING (queue_name)
ORDER BY unserved.queue_name;

-- name: unserved
-- The unserved queues, with one line for each unknown workflow among the first thousand submissions that wait for one.
SELECT u.queue_name, u.since, asked.workflow_id
FROM dagapp.dag_unserved_queues AS u
LEFT JOIN LATERAL (
    SELECT DISTINCT left(first.body ->> 'workflow_id', 64) AS workflow_id
    FROM (SELECT q.body
          FROM dagapp.dag_queue AS q
          WHERE u.queue_name LIKE %(unknown)s AND q.queue_name = u.queue_name AND q.lease_token IS NULL
          LIMIT 1000) AS first
    ORDER BY 1
    LIMIT 10
) AS asked ON true
ORDER BY u.queue_name, asked.workflow_id;

-- name: give_up
-- Fails tasks that have waited for `seconds` in a queue that nobody has served for that long. Their owners get a report.
WITH hopeless AS (
    DELETE FROM dagapp.dag_queue AS q
    USING dagapp.dag_unserved_queues AS u
    WHERE q.queue_name = u.queue_name AND q.lease_token IS NULL AND q.body ? 'task_id'
      AND u.since < now() - make_interval(secs => %(seconds)s)
      AND q.visible_at < now() - make_interval(secs => %(seconds)s)
      AND q.enqueued_at < now() - make_interval(secs => %(seconds)s)
    RETURNING q.queue_name, q.body
), told AS (
    SELECT h.queue_name, h.body ->> 'task_id' AS task_id, h.body ->> 'job_id' AS job_id,
           h.body ->> 'node_id' AS node_id, (h.body ->> 'item_index')::integer AS item_index,
           (h.body ->> 'attempt')::bigint AS attempt, coalesce(j.owner_id, '') AS owner_id
    FROM hopeless AS h
    JOIN dagapp.dag_jobs AS j ON j.job_id = h.body ->> 'job_id'
), kept AS (
    INSERT INTO dagapp.dag_task_results (
        task_id, job_id, node_id, item_index, attempt, status, error_message, error_code, retryable
    )
    SELECT task_id, job_id, node_id, item_index, attempt, 'failed',
           format('no worker served the queue ''%%s'' for %%s seconds', queue_name, %(seconds)s::numeric),
           'dispatch_timeout', false
    FROM told
    ON CONFLICT (task_id) DO NOTHING
)
INSERT INTO dagapp.dag_inbox (owner_id, job_id, node_id, items, attempt, task_id, report)
SELECT owner_id, job_id, node_id, ARRAY[item_index], attempt, task_id, 'failed'
FROM told
RETURNING owner_id;

-- name: waits
-- The messages among these that wait in a queue that nobody serves.
SELECT q.message_id, q.queue_name
FROM dagapp.dag_unserved_queues AS u
JOIN dagapp.dag_queue AS q
  ON q.queue_name = u.queue_name AND q.message_id = ANY(%(message_ids)s::text[]) AND q.lease_token IS NULL;

-- name: put_aside
-- Moves submissions with an unknown workflow to the queue in which other orchestrators look for them. A submission that
-- waits there already is stored once.
WITH chosen AS MATERIALIZED (
    SELECT sequence, message_id
    FROM dagapp.dag_queue
    WHERE sequence = ANY(%(sequences)s::bigint[]) AND queue_name = %(job_queue)s AND lease_token IS NULL
    FOR UPDATE SKIP LOCKED
), twice AS (
    DELETE FROM dagapp.dag_queue AS q
    USING chosen
    WHERE q.sequence = chosen.sequence
      AND EXISTS (SELECT FROM dagapp.dag_queue AS a
                  WHERE a.queue_name = %(unknown_queue)s AND a.message_id = chosen.message_id)
), moved AS (
    UPDATE dagapp.dag_queue AS q
    SET queue_name = %(unknown_queue)s
    FROM chosen
    WHERE q.sequence = chosen.sequence
      AND NOT EXISTS (SELECT FROM dagapp.dag_queue AS a
                      WHERE a.queue_name = %(unknown_queue)s AND a.message_id = chosen.message_id)
)
SELECT count(*) AS submissions FROM chosen;

-- name: recall
-- Moves submissions whose workflow the caller knows back to the queue that all orchestrators take from.
UPDATE dagapp.dag_queue AS q
SET queue_name = %(job_queue)s
FROM (
    SELECT w.sequence, w.message_id
    FROM dagapp.dag_queue AS w
    WHERE w.queue_name = %(unknown_queue)s AND w.lease_token IS NULL
      AND w.body ->> 'workflow_id' = ANY(%(workflow_ids)s::text[])
      AND NOT EXISTS (SELECT FROM dagapp.dag_queue AS a
                      WHERE a.queue_name = %(job_queue)s AND a.message_id = w.message_id)
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) AS chosen
WHERE q.sequence = chosen.sequence;

-- name: queued
-- The queue in which a submission waits.
SELECT queue_name, left(body ->> 'workflow_id', 64) AS workflow_id
FROM dagapp.dag_queue
WHERE queue_name IN (%(job_queue)s, %(unknown_queue)s) AND message_id = %(job_id)s;
