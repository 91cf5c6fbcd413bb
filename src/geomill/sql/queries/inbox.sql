-- Reports of workers, until the job's owner has taken them.

-- columns: report of dagapp.dag_inbox: job_id, node_id, attempt, report, started_at
-- columns: reason of dagapp.dag_task_results: error_message, error_code, retryable

-- name: settle
-- Stores reports on attempts whose leases are valid: the message is deleted (unless the report is "running"), the result
-- is stored, and the owner gets a report. A report without a valid lease changes nothing and is not returned. Reports of
-- one group are equal reports on items of one node, and become one report. The commit may notify the owner.
WITH ended AS MATERIALIZED (
    SELECT g."group", g.job_id, g.node_id, g.attempt, g.report, g.error_message, g.error_code, g.retryable, g.metrics,
           g.handler_version, g.started_at, one.sequence, one.lease_token, one.task_id, one.item_index, one.output,
           coalesce(j.owner_id, '') AS owner_id
    FROM json_to_recordset(%(ended)s::json) AS g (
        "group" bigint, {record of report}, {record of reason}, metrics text, handler_version text,
        sequences bigint[], tokens bigint[], task_ids text[], items integer[], outputs text[]
    )
    JOIN dagapp.dag_jobs AS j ON j.job_id = ANY (ARRAY[g.job_id])
    CROSS JOIN LATERAL unnest(g.sequences, g.tokens, g.task_ids, g.items, g.outputs)
        AS one (sequence, lease_token, task_id, item_index, output)
), gone AS (
    DELETE FROM dagapp.dag_queue AS q
    USING ended
    WHERE q.sequence = ANY (ARRAY[ended.sequence]) AND coalesce(q.lease_token, 0) = ended.lease_token
      AND ended.report <> 'running'
    RETURNING q.sequence
), held AS MATERIALIZED (
    SELECT "group", job_id, node_id, attempt, report, error_message, error_code, retryable, metrics, handler_version,
           started_at, sequence, task_id, item_index, output, owner_id
    FROM ended
    WHERE ended.sequence IN (SELECT sequence FROM gone)
       OR (ended.report = 'running' AND EXISTS (
               SELECT FROM dagapp.dag_queue AS q
               WHERE q.sequence = ended.sequence AND q.lease_token = ended.lease_token))
), kept AS (
    INSERT INTO dagapp.dag_task_results (
        task_id, job_id, node_id, item_index, attempt, status, output, error_message, error_code, retryable,
        worker_id, handler_version, metrics, started_at
    )
    SELECT task_id, job_id, node_id, item_index, attempt, report::text::dagapp.task_status, output::jsonb,
           error_message, error_code, coalesce(retryable, true), %(worker_id)s, handler_version,
           coalesce(metrics, '{}')::jsonb, started_at
    FROM held
    WHERE report IN ('completed', 'failed')
    ON CONFLICT (task_id) DO NOTHING
), told AS (
    INSERT INTO dagapp.dag_inbox (owner_id, job_id, node_id, items, attempt, task_id, report, worker_id, started_at)
    SELECT owner_id, job_id, node_id, array_agg(item_index), attempt,
           CASE WHEN min(item_index) < 0 OR report = 'failed' THEN min(task_id) ELSE '' END, report, %(worker_id)s,
           started_at
    FROM held
    GROUP BY "group", owner_id, job_id, node_id, attempt, report, started_at
)
SELECT owner_id, array_agg(sequence) AS sequences,
       count(pg_notify(left('o:' || owner_id, 63), '')) FILTER (WHERE %(called)s) AS called
FROM held
GROUP BY owner_id;

-- name: peek
-- The reports that the owner has not taken yet, in order of arrival and up to about `limit` items, without those of the
-- jobs in `held`. Outputs of fan-out items are not read.
SELECT i.sequence, i.job_id, i.node_id, i.items, i.attempt, i.report, i.worker_id, i.started_at,
       CASE WHEN i.items[1] < 0 THEN r.output END AS output,
       coalesce(r.error_message, i.reason) AS error_message, r.error_code, r.retryable, now() AS now
FROM (
    SELECT sequence, job_id, node_id, items, attempt, task_id, report, worker_id, started_at, reason,
           sum(cardinality(items)) OVER (ORDER BY sequence) - cardinality(items) AS earlier
    FROM dagapp.dag_inbox
    WHERE owner_id = %(owner_id)s AND sequence >= %(floor)s AND job_id <> ALL(%(held)b::text[])
    ORDER BY sequence
    LIMIT %(limit)s
) AS i
LEFT JOIN dagapp.dag_task_results AS r ON i.task_id <> '' AND r.task_id = ANY (ARRAY[i.task_id])
WHERE i.earlier < %(limit)s
ORDER BY i.sequence;

-- name: readdress
-- Gives reports to the new owner of their jobs.
UPDATE dagapp.dag_inbox SET owner_id = %(owner_id)s WHERE job_id = ANY(%(job_ids)s) AND owner_id <> %(owner_id)s;

-- name: readdress_strays
-- Gives reports to the owner of their job, if they were addressed to one that lost the job at the same moment.
UPDATE dagapp.dag_inbox AS i
SET owner_id = j.owner_id
FROM dagapp.dag_jobs AS j
WHERE j.job_id = i.job_id AND j.owner_id = %(owner_id)s AND i.owner_id <> j.owner_id;

-- name: command
-- Sends a command to a job's owner. Returns nothing if there is no such job under way.
INSERT INTO dagapp.dag_inbox (owner_id, job_id, report, reason)
SELECT coalesce(owner_id, ''), job_id, %(report)s::dagapp.report, %(reason)s
FROM dagapp.dag_jobs
WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
RETURNING owner_id;

-- name: forward
-- Passes on reports of jobs that the caller does not own, and deletes them if the job has ended. Returns the jobs that
-- the caller does own.
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
