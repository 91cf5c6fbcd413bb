-- Workflow definitions that jobs are pinned to.

-- name: insert
INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)
VALUES (%(definition_hash)s, %(workflow_id)s, %(version)s, %(body)s::json)
ON CONFLICT (definition_hash) DO NOTHING;

-- name: get
SELECT {columns of dagapp.dag_definitions} FROM dagapp.dag_definitions WHERE definition_hash = %(definition_hash)s;
