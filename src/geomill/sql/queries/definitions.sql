-- Workflow definitions that jobs are pinned to.

-- columns: new_definition of dagapp.dag_definitions without created_at

-- name: insert
INSERT INTO dagapp.dag_definitions ({columns of new_definition})
VALUES ({values of new_definition})
ON CONFLICT (definition_hash) DO NOTHING;

-- name: get
SELECT {columns of dagapp.dag_definitions} FROM dagapp.dag_definitions WHERE definition_hash = %(definition_hash)s;

-- name: versions
-- The definitions of a workflow that jobs were pinned to, the newest first, with how many of its newest jobs each has.
-- An index leads to those jobs; to count all of them would read the whole history of the workflow.
WITH newest AS MATERIALIZED (
    SELECT definition_hash, created_at
    FROM dagapp.dag_jobs
    WHERE workflow_id = %(workflow_id)s
    ORDER BY created_at DESC
    LIMIT %(sample)s
), used AS (
    SELECT definition_hash, count(*) AS jobs, max(created_at) AS last_used_at
    FROM newest
    GROUP BY definition_hash
)
SELECT d.definition_hash, d.version, d.created_at AS first_used_at, coalesce(used.jobs, 0) AS recent_jobs,
       used.last_used_at
FROM dagapp.dag_definitions AS d
LEFT JOIN used USING (definition_hash)
WHERE d.workflow_id = %(workflow_id)s
  AND (%(before)s::timestamptz IS NULL
       OR (d.created_at, d.definition_hash) < (%(before)s::timestamptz, %(before_id)s::text))
ORDER BY d.created_at DESC, d.definition_hash DESC
LIMIT %(limit)s;
