-- Messages between the roles. A row waits (lease_token is null) or is leased; it is deleted when it is done with.
--
-- The hot statements are planned again whenever the table was vacuumed, which is often, and then it may be empty: where
-- there are no rows any plan is cheap, and the one that reads them all for each row wanted is as good as another. So the
-- planner gets no choice. Sessions of the engine neither scan tables nor sort if they can help it (store/pool.py), and a
-- row that is wanted by its key is asked for by `key = ANY (ARRAY[wanted.key])`: that can only be looked up in the index,
-- once for each wanted row. `coalesce(lease_token, 0)` beside it does not tell that the partial index of leased rows would
-- hold the row, too. `tests/integration/store/test_plans.py` holds the plans to it.
--
-- Messages of one queue, priority and tenant are a line: first come, first served, one range of the index. Only the lines
-- of the highest priority are served, and these take turns (queues/turns.py). Which lines there are is found by jumping
-- from the head of one to the head of the next: one look-up for each line, however long the lines are. That needs both
-- columns in the same direction, so `tenant DESC`: then `(priority, tenant) < (…)` is one range, too.

-- A line is read from its head, and so are the dead entries of what was taken, until they are vacuumed. A consumer whose
-- looks have become dear begins at a `floor` instead (queues/floors.py).

-- columns: message of dagapp.dag_queue: queue_name, message_id, body, priority, tenant
-- columns: letter of dagapp.dag_dead_letters: queue_name, message_id, body, priority, delivery_count, enqueued_at

-- name: send
-- Joins the caller's transaction. A message sent twice is stored once.
INSERT INTO dagapp.dag_queue ({columns of message}, visible_at, expires_at)
SELECT m.queue_name, m.message_id, m.body::jsonb, m.priority, m.tenant, coalesce(m.visible_at, now()),
       coalesce(m.visible_at, now()) + make_interval(secs => m.ttl_seconds)
FROM unnest(
    %(queue_names)b::text[], %(message_ids)b::text[], %(bodies)b::text[], %(priorities)b::smallint[],
    %(tenants)b::text[], %(visible_at)b::timestamptz[], %(ttl_seconds)b::float8[]
) AS m (queue_name, message_id, body, priority, tenant, visible_at, ttl_seconds)
ON CONFLICT (queue_name, message_id) DO NOTHING;

-- name: hand_in
-- Sends one message, in a transaction of its own that does not wait for the disk: the receiver looks while the disk
-- writes. `flush` must follow before the sender reports that the message was sent. A message sent twice is stored once.
WITH relaxed AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
), sent AS (
    INSERT INTO dagapp.dag_queue ({columns of message})
    VALUES ({values of message})
    ON CONFLICT (queue_name, message_id) DO NOTHING
)
SELECT pg_notify(%(called)s, ''), now() AS sent_at FROM relaxed;

-- name: flush
-- Waits until everything that was committed before is on disk. Only a commit that writes something does so.
SELECT pg_logical_emit_message(true, 'geomill', '');

-- name: line
-- Part of `lines`: the lines in which a message waits, the highest priority first.
SELECT wanted.queue_name, head.priority, head.tenant
FROM unnest(%(queue_names)b::text[]) AS wanted (queue_name)
CROSS JOIN LATERAL (
    SELECT w.priority, w.tenant
    FROM dagapp.dag_queue AS w
    WHERE w.queue_name = wanted.queue_name AND w.lease_token IS NULL AND w.visible_at <= now()
    ORDER BY w.priority DESC, w.tenant DESC
    LIMIT 1
) AS head
UNION ALL
SELECT line.queue_name, next.priority, next.tenant
FROM line
CROSS JOIN LATERAL (
    SELECT w.priority, w.tenant
    FROM dagapp.dag_queue AS w
    WHERE w.queue_name = line.queue_name AND w.lease_token IS NULL AND w.visible_at <= now()
      AND (w.priority, w.tenant) < (line.priority, line.tenant)
    ORDER BY w.priority DESC, w.tenant DESC
    LIMIT 1
) AS next

-- name: lines
-- Follows `line`.
SELECT queue_name, priority, tenant FROM line

-- name: take
-- Receives and completes messages at once, a share of each line, for a consumer whose effects are in the same transaction.
WITH chosen AS MATERIALIZED (
    SELECT next.sequence
    FROM unnest(%(priorities)b::smallint[], %(tenants)b::text[], %(shares)b::integer[], %(floors)b::bigint[])
        AS line (priority, tenant, share, floor)
    CROSS JOIN LATERAL (
        SELECT w.sequence
        FROM dagapp.dag_queue AS w
        WHERE w.queue_name = %(queue_name)s AND w.priority = line.priority AND w.tenant = line.tenant
          AND w.sequence >= line.floor AND w.lease_token IS NULL AND w.visible_at <= now()
          AND w.enqueued_at <= now() - make_interval(secs => %(older_than)s)
        ORDER BY w.sequence
        LIMIT line.share
        FOR UPDATE SKIP LOCKED
    ) AS next
)
DELETE FROM dagapp.dag_queue AS q
USING chosen
WHERE q.sequence = ANY (ARRAY[chosen.sequence])
RETURNING q.sequence, q.message_id, q.body, q.priority, q.tenant, q.delivery_count, q.enqueued_at, now() AS now;

-- name: look
-- Messages that wait, up to the limit. They stay in the queue.
SELECT sequence, message_id, body, priority, tenant, delivery_count, enqueued_at, now() AS now
FROM dagapp.dag_queue
WHERE queue_name = %(queue_name)s AND lease_token IS NULL AND visible_at <= now()
ORDER BY priority DESC, tenant DESC, sequence
LIMIT %(limit)s;

-- name: postpone
UPDATE dagapp.dag_queue
SET visible_at = now() + make_interval(secs => %(delay_seconds)s)
WHERE sequence = %(sequence)s AND lease_token IS NULL;

-- A lease is joined from the parts below (queues/postgres.py): `WITH relaxed, head, alone, leased …` for queues, and
-- `WITH relaxed, chosen, leased …` for lines. The first leases the next messages of each queue, up to its share, if they
-- are all of one line. Of a queue with several lines nothing is leased: its name is returned, with a sequence of 0, and
-- the caller looks at the lines and asks again by the second, with a share for each. So what costs time is paid for only
-- where tenants or priorities meet.

-- name: relaxed
SELECT CASE WHEN %(relaxed)s THEN set_config('synchronous_commit', 'off', true) END

-- name: head
SELECT wanted.queue_name, wanted.share, first.priority, first.tenant,
       EXISTS (
           SELECT
           FROM dagapp.dag_queue AS w
           WHERE w.queue_name = wanted.queue_name AND w.lease_token IS NULL AND w.visible_at <= now()
             AND (w.priority, w.tenant) < (first.priority, first.tenant)
       ) AS shared
FROM unnest(%(queue_names)b::text[], %(shares)b::integer[]) AS wanted (queue_name, share)
CROSS JOIN LATERAL (
    SELECT w.priority, w.tenant
    FROM dagapp.dag_queue AS w
    WHERE w.queue_name = wanted.queue_name AND w.lease_token IS NULL AND w.visible_at <= now()
    ORDER BY w.priority DESC, w.tenant DESC
    LIMIT 1
) AS first

-- name: alone
SELECT queue_name, priority, tenant, share, 0::bigint AS floor FROM head WHERE NOT shared

-- name: chosen
SELECT queue_name, priority, tenant, share, floor
FROM unnest(
    %(queue_names)b::text[], %(priorities)b::smallint[], %(tenants)b::text[], %(shares)b::integer[], %(floors)b::bigint[]
) AS line (queue_name, priority, tenant, share, floor)

-- name: leased
-- The token is new and greater. Only rows that are leased are locked. A row that this statement has locked stays in its
-- place, so it is updated by its ctid without another look-up.
UPDATE dagapp.dag_queue AS q
SET lease_token = q.delivery_count + 1,
    delivery_count = q.delivery_count + 1,
    leased_by = %(leased_by)s,
    leased_until = now() + make_interval(secs => %(lease_seconds)s),
    started_at = now(),
    progress = NULL,
    progress_message = NULL
FROM relaxed
WHERE q.ctid = ANY (ARRAY(
    SELECT next.place
    FROM chosen
    CROSS JOIN LATERAL (
        SELECT w.ctid AS place
        FROM dagapp.dag_queue AS w
        WHERE w.queue_name = chosen.queue_name AND w.priority = chosen.priority AND w.tenant = chosen.tenant
          AND w.sequence >= chosen.floor AND w.lease_token IS NULL AND w.visible_at <= now()
        ORDER BY w.sequence
        LIMIT chosen.share
        FOR UPDATE SKIP LOCKED
    ) AS next
))
RETURNING q.sequence, q.queue_name, q.message_id, q.body::text, q.lease_token, q.delivery_count, q.started_at,
          date_part('epoch', now() - greatest(q.enqueued_at, q.visible_at)) AS waited, q.tenant, q.priority

-- name: leased_only
SELECT sequence, queue_name, message_id, body, lease_token, delivery_count, started_at, waited, tenant, priority FROM leased

-- name: leased_or_shared
-- The names of shared queues come last.
SELECT sequence, queue_name, message_id, body, lease_token, delivery_count, started_at, waited, tenant, priority FROM leased
UNION ALL
SELECT 0, queue_name, '', '', 0, 0, now(), 0, tenant, priority FROM head WHERE shared

-- name: renew
UPDATE dagapp.dag_queue AS q
SET leased_until = now() + make_interval(secs => %(lease_seconds)s)
FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[]) AS held (sequence, lease_token)
WHERE q.sequence = ANY (ARRAY[held.sequence]) AND coalesce(q.lease_token, 0) = held.lease_token
RETURNING q.sequence;

-- name: take_back
-- Gives leases back to a live consumer that lost them, or whose leases the server forgot in a crash, if nobody has leased
-- the message since. The token may be used again, because nobody else has had it.
UPDATE dagapp.dag_queue AS q
SET lease_token = held.lease_token, delivery_count = held.lease_token, leased_by = %(leased_by)s,
    leased_until = now() + make_interval(secs => %(lease_seconds)s), started_at = now()
FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[]) AS held (sequence, lease_token)
WHERE q.sequence = ANY (ARRAY[held.sequence]) AND coalesce(q.lease_token, 0) = 0
  AND q.delivery_count <= held.lease_token
RETURNING q.sequence;

-- name: lost
-- The leases that are no longer valid: the message is gone, or leased to another consumer.
SELECT held.sequence
FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[]) AS held (sequence, lease_token)
WHERE NOT EXISTS (
    SELECT FROM dagapp.dag_queue AS q
    WHERE q.sequence = ANY (ARRAY[held.sequence]) AND coalesce(q.lease_token, 0) = held.lease_token
);

-- name: refuse
-- Dead-letters leased messages that cannot be understood.
WITH gone AS (
    DELETE FROM dagapp.dag_queue AS q
    USING unnest(%(sequences)b::bigint[], %(tokens)b::bigint[], %(descriptions)b::text[])
        AS r (sequence, lease_token, description)
    WHERE q.sequence = ANY (ARRAY[r.sequence]) AND coalesce(q.lease_token, 0) = r.lease_token
    RETURNING {columns of letter as q}, r.description
)
INSERT INTO dagapp.dag_dead_letters ({columns of letter}, reason, description)
SELECT {columns of letter}, 'MalformedMessage', description
FROM gone;

-- name: defer
-- Puts back leased messages that nobody may work on yet. No loss is charged. The row stays: a withdrawal that waits for
-- its lock would not see a new one. So the delivery counts, which gives the next lease a token of its own.
UPDATE dagapp.dag_queue AS q
SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL, on_trial = false,
    visible_at = now() + make_interval(secs => %(delay_seconds)s)
FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[]) AS held (sequence, lease_token)
WHERE q.sequence = ANY (ARRAY[held.sequence]) AND coalesce(q.lease_token, 0) = held.lease_token;

-- name: precedents
-- What is known of the previous attempts of leased messages. A message is suspect if it may take down its worker: it was
-- lost twice, or the previous attempt was given up for that reason. Suspects count as not started until they are put on
-- trial (worker/trial.py).
WITH held AS MATERIALIZED (
    SELECT u.sequence, u.lease_token, r.error_code, r.handler_version
    FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[], %(before)b::text[]) AS u (sequence, lease_token, before)
    LEFT JOIN dagapp.dag_task_results AS r ON r.task_id = ANY (ARRAY[u.before])
), suspects AS (
    UPDATE dagapp.dag_queue AS q
    SET started_at = NULL, losses = greatest(q.losses, 2)
    FROM held
    WHERE q.sequence = ANY (ARRAY[held.sequence]) AND coalesce(q.lease_token, 0) = held.lease_token
      AND (q.losses >= 2 OR held.error_code = 'worker_lost')
    RETURNING q.sequence
)
SELECT sequence, handler_version, sequence IN (SELECT s.sequence FROM suspects AS s) AS suspect FROM held;

-- name: put_on_trial
UPDATE dagapp.dag_queue
SET started_at = now(), on_trial = true
WHERE sequence = %(sequence)s AND coalesce(lease_token, 0) = %(lease_token)s
RETURNING sequence;

-- name: acquit
UPDATE dagapp.dag_queue AS q
SET on_trial = false
FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[]) AS held (sequence, lease_token)
WHERE q.sequence = ANY (ARRAY[held.sequence]) AND coalesce(q.lease_token, 0) = held.lease_token;

-- name: tried
-- The consumers with lost leases that had a task on trial.
SELECT DISTINCT leased_by
FROM dagapp.dag_queue
WHERE lease_token IS NOT NULL AND on_trial AND (leased_by = ANY(%(dead)s) OR (%(lapsed)s AND leased_until < now()));

-- name: forgive
-- Messages that were taken from a worker that has come back, and so are no loss.
UPDATE dagapp.dag_queue SET losses = losses - 1 WHERE sequence = ANY(%(sequences)s) AND losses > 0;

-- name: report_progress
UPDATE dagapp.dag_queue AS q
SET progress = r.progress, progress_message = r.message
FROM unnest(%(sequences)b::bigint[], %(tokens)b::bigint[], %(progress)b::float8[], %(messages)b::text[])
    AS r (sequence, lease_token, progress, message)
WHERE q.sequence = ANY (ARRAY[r.sequence]) AND coalesce(q.lease_token, 0) = r.lease_token;

-- name: withdraw
-- Deletes messages of attempts that nobody needs any more, waiting or leased.
DELETE FROM dagapp.dag_queue
WHERE (queue_name, message_id) IN (
    SELECT u.queue_name, u.message_id
    FROM unnest(%(queue_names)b::text[], %(message_ids)b::text[]) AS u (queue_name, message_id)
);

-- name: release
-- Ends the leases of dead consumers, and those that were not renewed in time. A task that had started is charged with the
-- loss. If the consumer had a task on trial, only that task is.
UPDATE dagapp.dag_queue
SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL, on_trial = false,
    losses = losses + (started_at IS NOT NULL AND (on_trial OR leased_by <> ALL(%(tried)s)))::integer
WHERE lease_token IS NOT NULL AND (leased_by = ANY(%(dead)s) OR (%(lapsed)s AND leased_until < now()))
RETURNING queue_name;

-- name: disown
-- Ends leases that the consumer does not know of, because the answer was lost with the connection.
UPDATE dagapp.dag_queue
SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL, on_trial = false
WHERE leased_by = %(leased_by)s AND lease_token IS NOT NULL AND sequence <> ALL(%(known)b::bigint[])
RETURNING queue_name;

-- name: give_up
-- Fails tasks that waited for too long, tasks that took down all their workers, and tasks that were delivered ten times
-- as often, whatever the cause. Their owners get a report.
WITH hopeless AS (
    DELETE FROM dagapp.dag_queue AS q
    WHERE q.body ? 'task_id'
      AND ((q.lease_token IS NULL AND q.expires_at < now())
           OR (q.lease_token IS NOT NULL
               AND (q.losses + (q.started_at IS NOT NULL AND (q.on_trial OR q.leased_by <> ALL(%(tried)s)))::integer
                        >= %(max_deliveries)s
                    OR q.delivery_count >= %(max_deliveries)s * 10)
               AND (q.leased_by = ANY(%(dead)s) OR (%(lapsed)s AND q.leased_until < now()))))
    RETURNING q.body, q.losses + (q.started_at IS NOT NULL)::integer AS losses, q.delivery_count, q.leased_by,
              q.started_at, q.lease_token IS NULL AS waited
), told AS (
    SELECT h.body ->> 'task_id' AS task_id, h.body ->> 'job_id' AS job_id, h.body ->> 'node_id' AS node_id,
           (h.body ->> 'item_index')::integer AS item_index, (h.body ->> 'attempt')::bigint AS attempt, h.waited,
           h.losses, h.delivery_count, h.leased_by, h.started_at, coalesce(j.owner_id, '') AS owner_id
    FROM hopeless AS h
    JOIN dagapp.dag_jobs AS j ON j.job_id = h.body ->> 'job_id'
), kept AS (
    INSERT INTO dagapp.dag_task_results (
        task_id, job_id, node_id, item_index, attempt, status, error_message, error_code, retryable, worker_id, started_at
    )
    SELECT task_id, job_id, node_id, item_index, attempt, 'failed',
           CASE WHEN waited THEN 'no worker took the task before its dispatch_timeout_seconds were over'
                WHEN losses > 2 THEN format('its worker was lost %%s times while it ran the task, and each of the last'
                                            ' %%s times soon after it began', losses, losses - 2)
                ELSE format('its worker was lost %%s times while it ran the task, which was delivered %%s times', losses,
                            delivery_count) END,
           CASE WHEN waited THEN 'dispatch_timeout' ELSE 'worker_lost' END,
           true, leased_by, started_at
    FROM told
    ON CONFLICT (task_id) DO NOTHING
)
INSERT INTO dagapp.dag_inbox (owner_id, job_id, node_id, items, attempt, task_id, report, worker_id, started_at)
SELECT owner_id, job_id, node_id, ARRAY[item_index], attempt, task_id, 'failed', leased_by, started_at
FROM told
RETURNING owner_id;

-- name: bury
-- Dead-letters submissions that nobody claimed within their time to live.
WITH expired AS (
    DELETE FROM dagapp.dag_queue
    WHERE NOT body ? 'task_id' AND lease_token IS NULL AND expires_at < now()
    RETURNING {columns of letter}
)
INSERT INTO dagapp.dag_dead_letters ({columns of letter}, reason, description)
SELECT {columns of letter}, 'TTLExpired', 'it was not received before its time to live was over'
FROM expired;

-- name: dead_letter
INSERT INTO dagapp.dag_dead_letters ({columns of letter}, reason, description)
VALUES ({values of letter}, %(reason)s, %(description)s);

-- name: dead_letter_once
-- Keeps a message from outside that was refused. It may be delivered and refused again, and is kept once.
INSERT INTO dagapp.dag_dead_letters (queue_name, message_id, body, reason, description)
SELECT %(queue_name)s::text, %(message_id)s::text, %(body)s::jsonb, %(reason)s::text, %(description)s::text
WHERE NOT EXISTS (
    SELECT FROM dagapp.dag_dead_letters WHERE queue_name = %(queue_name)s AND message_id = %(message_id)s
);

-- name: running
-- The leased tasks of a job, with their progress.
SELECT message_id AS task_id, leased_by, started_at, progress, progress_message
FROM dagapp.dag_queue
WHERE lease_token IS NOT NULL AND starts_with(message_id, %(prefix)s::text);

-- name: notify
SELECT pg_notify(channel, payload) FROM unnest(%(channels)b::text[], %(payloads)b::text[]) AS call (channel, payload);

-- name: this_session
SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid();

-- name: backend
-- The process of the server that answers this statement.
SELECT pg_backend_pid() AS pid;

-- name: end_session
-- Ends one session. Its start time identifies it, because a process id may be used again.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %(pid)s AND backend_start = %(backend_start)s;

-- Only queues/postgres_broker.py needs the statements below.

-- name: expire
-- Dead-letters the messages of one queue that nobody received within their time to live.
WITH expired AS MATERIALIZED (
    SELECT sequence
    FROM dagapp.dag_queue
    WHERE queue_name = %(queue_name)s AND lease_token IS NULL AND expires_at < now()
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM dagapp.dag_queue AS q
    USING expired
    WHERE q.sequence = expired.sequence
    RETURNING {columns of letter as q}
)
INSERT INTO dagapp.dag_dead_letters ({columns of letter}, reason, description)
SELECT {columns of letter}, 'TTLExpired', 'it was not received before its time to live was over'
FROM gone;

-- name: lapse
-- Ends the leases of one queue that were not renewed in time.
UPDATE dagapp.dag_queue AS q
SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL
FROM (
    SELECT sequence
    FROM dagapp.dag_queue
    WHERE queue_name = %(queue_name)s AND lease_token IS NOT NULL AND leased_until < now()
    FOR UPDATE SKIP LOCKED
) AS over
WHERE q.sequence = over.sequence;

-- name: complete
DELETE FROM dagapp.dag_queue AS q
USING unnest(%(sequences)s::bigint[], %(tokens)s::bigint[]) AS held (sequence, lease_token)
WHERE q.sequence = held.sequence AND q.lease_token = held.lease_token
RETURNING q.sequence;

-- name: abandon
UPDATE dagapp.dag_queue AS q
SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL,
    visible_at = now() + make_interval(secs => %(delay_seconds)s)
FROM unnest(%(sequences)s::bigint[], %(tokens)s::bigint[]) AS held (sequence, lease_token)
WHERE q.sequence = held.sequence AND q.lease_token = held.lease_token
RETURNING q.sequence;

-- name: bury_leased
WITH gone AS (
    DELETE FROM dagapp.dag_queue AS q
    USING unnest(%(sequences)s::bigint[], %(tokens)s::bigint[]) AS held (sequence, lease_token)
    WHERE q.sequence = held.sequence AND q.lease_token = held.lease_token
    RETURNING q.sequence, {columns of letter as q}
), buried AS (
    INSERT INTO dagapp.dag_dead_letters ({columns of letter}, reason, description)
    SELECT {columns of letter}, %(reason)s, %(description)s
    FROM gone
)
SELECT sequence FROM gone;

-- name: overview
-- Every queue that has a message or a dead letter.
SELECT coalesce(q.queue_name, d.queue_name) AS queue_name, coalesce(q.waiting, 0) AS waiting,
       coalesce(q.scheduled, 0) AS scheduled, coalesce(q.leased, 0) AS leased, coalesce(d.dead, 0) AS dead, q.oldest,
       extract(epoch FROM now() - q.oldest)::float8 AS oldest_seconds
FROM (
    SELECT queue_name,
           count(*) FILTER (WHERE lease_token IS NULL AND visible_at <= now()) AS waiting,
           count(*) FILTER (WHERE lease_token IS NULL AND visible_at > now()) AS scheduled,
           count(*) FILTER (WHERE lease_token IS NOT NULL) AS leased,
           min(greatest(enqueued_at, visible_at)) FILTER (WHERE lease_token IS NULL AND visible_at <= now()) AS oldest
    FROM dagapp.dag_queue
    WHERE %(queue_name)s::text IS NULL OR queue_name = %(queue_name)s
    GROUP BY queue_name
) AS q
FULL JOIN (
    SELECT queue_name, count(*) AS dead
    FROM dagapp.dag_dead_letters
    WHERE %(queue_name)s::text IS NULL OR queue_name = %(queue_name)s
    GROUP BY queue_name
) AS d ON d.queue_name = q.queue_name
ORDER BY 1;

-- name: peek
SELECT message_id, body, priority, delivery_count, enqueued_at, visible_at, expires_at
FROM dagapp.dag_queue
WHERE queue_name = %(queue_name)s AND lease_token IS NULL
ORDER BY visible_at > now(), priority DESC, sequence
LIMIT %(limit)s;

-- name: peek_page
-- Like `peek`. A long body is left out, so that a page of the longest messages does not fill the memory.
SELECT message_id, CASE WHEN octet_length(body::text) <= %(longest_body)s THEN body END AS body,
       octet_length(body::text) AS body_bytes, priority, tenant, delivery_count, enqueued_at, visible_at, expires_at
FROM (
    SELECT sequence, message_id, body, priority, tenant, delivery_count, enqueued_at, visible_at, expires_at
    FROM dagapp.dag_queue
    WHERE queue_name = %(queue_name)s AND lease_token IS NULL
    ORDER BY visible_at > now(), priority DESC, sequence
    LIMIT %(limit)s
) AS next
ORDER BY visible_at > now(), priority DESC, sequence;

-- name: message
-- A waiting or leased message, whole.
SELECT message_id, body, octet_length(body::text) AS body_bytes, priority, tenant, delivery_count, enqueued_at,
       visible_at, expires_at
FROM dagapp.dag_queue
WHERE queue_name = %(queue_name)s AND message_id = %(message_id)s;

-- name: letters_page
-- Dead letters, the latest first, after the last one of the page before. Long bodies are left out.
SELECT sequence, queue_name, message_id,
       CASE WHEN octet_length(body::text) <= %(longest_body)s THEN body END AS body,
       octet_length(body::text) AS body_bytes, reason, description, delivery_count, enqueued_at, dead_lettered_at
FROM dagapp.dag_dead_letters
WHERE (%(queue_name)s::text IS NULL OR queue_name = %(queue_name)s)
  AND (%(reason)s::text IS NULL OR reason = %(reason)s)
  AND (%(before)s::bigint IS NULL OR sequence < %(before)s)
ORDER BY sequence DESC
LIMIT %(limit)s;

-- name: letter
-- The latest dead letter with this id, whole.
SELECT sequence, queue_name, message_id, body, octet_length(body::text) AS body_bytes, reason, description,
       delivery_count, enqueued_at, dead_lettered_at
FROM dagapp.dag_dead_letters
WHERE message_id = %(message_id)s AND (%(queue_name)s::text IS NULL OR queue_name = %(queue_name)s)
ORDER BY sequence DESC
LIMIT 1;

-- name: letter_queues
-- The queues of dead letters with these ids.
SELECT DISTINCT queue_name, message_id
FROM dagapp.dag_dead_letters
WHERE message_id = ANY(%(message_ids)s::text[])
  AND (%(queue_name)s::text IS NULL OR queue_name = %(queue_name)s);

-- name: discard
-- Deletes dead letters, and writes down who did it and why, one line for each.
WITH chosen AS MATERIALIZED (
    SELECT sequence
    FROM dagapp.dag_dead_letters
    WHERE (%(queue_name)s::text IS NULL OR queue_name = %(queue_name)s)
      AND (%(message_ids)s::text[] IS NULL OR message_id = ANY(%(message_ids)s))
    ORDER BY sequence
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM dagapp.dag_dead_letters AS d
    USING chosen
    WHERE d.sequence = chosen.sequence
    RETURNING d.queue_name, d.message_id, d.reason, d.description, d.body, d.dead_lettered_at
), told AS (
    INSERT INTO app.operator_audit (action, target, actor, reason, details)
    SELECT 'dead_letter_discarded', message_id, %(actor)s, %(why)s,
           jsonb_build_object('queue_name', queue_name, 'reason', reason, 'description', left(description, 500),
                              'dead_lettered_at', dead_lettered_at, 'job_id', left(body ->> 'job_id', 64),
                              'workflow_id', left(body ->> 'workflow_id', 64))
    FROM gone
)
SELECT message_id FROM gone ORDER BY message_id;

-- name: dead_letters
SELECT queue_name, message_id, body, reason, description, delivery_count, enqueued_at, dead_lettered_at
FROM dagapp.dag_dead_letters
WHERE %(queue_name)s::text IS NULL OR queue_name = %(queue_name)s
ORDER BY sequence DESC
LIMIT %(limit)s;

-- name: redrive
-- Sends the latest dead letter of each id again, unless a message with its id waits in the queue. Returns those sent.
WITH chosen AS MATERIALIZED (
    SELECT sequence, queue_name, message_id, body, priority, reason, description, delivery_count, enqueued_at,
           dead_lettered_at
    FROM dagapp.dag_dead_letters
    WHERE queue_name = %(queue_name)s AND (%(message_ids)s::text[] IS NULL OR message_id = ANY(%(message_ids)s))
    ORDER BY sequence
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), sent AS (
    INSERT INTO dagapp.dag_queue ({columns of message})
    SELECT DISTINCT ON (message_id) queue_name, message_id, body, priority, left(coalesce(body ->> 'tenant', ''), 64)
    FROM chosen
    ORDER BY message_id, sequence DESC
    ON CONFLICT (queue_name, message_id) DO NOTHING
    RETURNING message_id
), gone AS (
    DELETE FROM dagapp.dag_dead_letters AS d
    USING chosen, sent
    WHERE d.sequence = chosen.sequence AND chosen.message_id = sent.message_id
)
SELECT DISTINCT ON (message_id) queue_name, message_id, body, reason, description, delivery_count, enqueued_at,
       dead_lettered_at
FROM chosen
JOIN sent USING (message_id)
ORDER BY message_id, chosen.sequence DESC;

-- name: forget_refused
-- Deletes the failed jobs of refused submissions, never a job that began.
DELETE FROM dagapp.dag_jobs
WHERE job_id = ANY(%(job_ids)s::text[]) AND definition_hash IS NULL AND status = 'failed';
