-- Reports of workers, until the job's owner has taken them.

-- name: settle
-- Attempts that ended or speak up, whose lease still holds: the message goes (unless it only says "running"), the
-- result is kept and the owner is told. A report without a valid lease changes nothing; it is missing in the answer.
WITH ended AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset(%(ended)s::json) AS e (
        sequence bigint, lease_token bigint, task_id text, job_id text, node_id text, item_index integer,
        attempt bigint, report dagapp.report, output text, error_message text, error_code text, retryable boolean,
        metrics text, started_at timestamptz
    )
), gone AS (
    DELETE FROM dagapp.dag_queue AS q
    USING ended
    WHERE q.sequence = ended.sequence AND q.lease_token = ended.lease_token AND ended.report <> 'running'
    RETURNING q.sequence
), held AS (
    SELECT ended.*
    FROM ended
    WHERE ended.sequence IN (SELECT sequence FROM gone)
       OR (ended.report = 'running' AND EXISTS (
               SELECT FROM dagapp.dag_queue AS q
               WHERE q.sequence = ended.sequence AND q.lease_token = ended.lease_token))
), kept AS (
    INSERT INTO dagapp.dag_task_results (
        task_id, job_id, node_id, item_index, attempt, status, output, error_message, error_code, retryable,
        worker_id, metrics, started_at
    )
    SELECT task_id, job_id, node_id, item_index, attempt, report::text::dagapp.task_status, output::jsonb,
           error_message, error_code, retryable, %(worker_id)s, metrics::jsonb, started_at
    FROM held
    WHERE report IN ('completed', 'failed')
    ON CONFLICT (task_id) DO NOTHING
)
INSERT INTO dagapp.dag_inbox (owner_id, job_id, node_id, item_index, attempt, task_id, report, worker_id, started_at)
SELECT coalesce(j.owner_id, ''), held.job_id, held.node_id, held.item_index, held.attempt, held.task_id, held.report,
       %(worker_id)s, held.started_at
FROM held
JOIN dagapp.dag_jobs AS j ON j.job_id = held.job_id
RETURNING task_id, owner_id;

-- name: peek
-- What the owner has not taken yet, in order of arrival. Outputs of fan-out items stay where they are.
SELECT i.sequence, i.job_id, i.node_id, i.item_index, i.attempt, i.task_id, i.report, i.worker_id, i.started_at,
       CASE WHEN i.item_index < 0 THEN r.output END AS output,
       coalesce(r.error_message, i.reason) AS error_message, r.error_code, r.retryable, now() AS now
FROM dagapp.dag_inbox AS i
LEFT JOIN dagapp.dag_task_results AS r ON r.task_id = i.task_id
WHERE i.owner_id = %(owner_id)s
ORDER BY i.sequence
LIMIT %(limit)s;

-- name: readdress
-- Reports of jobs that have a new owner.
UPDATE dagapp.dag_inbox SET owner_id = %(owner_id)s WHERE job_id = ANY(%(job_ids)s) AND owner_id <> %(owner_id)s;

-- name: readdress_strays
-- A report may have been addressed to an owner that lost the job in the same moment.
UPDATE dagapp.dag_inbox AS i
SET owner_id = j.owner_id
FROM dagapp.dag_jobs AS j
WHERE j.job_id = i.job_id AND j.owner_id = %(owner_id)s AND i.owner_id <> j.owner_id;

-- name: command
-- Tells a job's owner to do something. Nothing is returned when there is no such job under way.
INSERT INTO dagapp.dag_inbox (owner_id, job_id, report, reason)
SELECT coalesce(owner_id, ''), job_id, %(report)s::dagapp.report, %(reason)s
FROM dagapp.dag_jobs
WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
RETURNING owner_id;

-- name: forward
-- Reports of jobs that are not (any more) ours to decide: on to the owner, or away when the job has ended.
-- Returns the jobs that are ours after all, although we did not know.
WITH concerned AS (
    SELECT job_id, owner_id, status IN ('pending', 'running') AS active
    FROM dagapp.dag_jobs
    WHERE job_id = ANY(%(job_ids)s)
), passed_on AS (
    UPDATE dagapp.dag_inbox AS i
    SET owner_id = coalesce(c.owner_id, '')
    FROM concerned AS c
    WHERE i.job_id = c.job_id AND c.active AND i.owner_id <> coalesce(c.owner_id, '')
), dropped AS (
    DELETE FROM dagapp.dag_inbox AS i
    WHERE i.job_id = ANY(%(job_ids)s) AND NOT EXISTS (SELECT FROM concerned AS c WHERE c.job_id = i.job_id AND c.active)
)
SELECT job_id FROM concerned WHERE active AND owner_id = %(owner_id)s;
