-- The failures of a process's duties, on its own row.

-- name: report
UPDATE dagapp.dag_instances SET duties = %(duties)s::jsonb WHERE instance_id = %(instance_id)s;
