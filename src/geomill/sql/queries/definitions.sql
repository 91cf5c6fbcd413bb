-- Workflow definitions that jobs are pinned to.

-- columns: new_definition of dagapp.dag_definitions without created_at

-- name: insert
INSERT INTO dagapp.dag_definitions ({columns of new_definition})
VALUES ({values of new_definition})
ON CONFLICT (definition_hash) DO NOTHING;

-- name: get
SELECT {columns of dagapp.dag_definitions} FROM dagapp.dag_definitions WHERE definition_hash = %(definition_hash)s;
