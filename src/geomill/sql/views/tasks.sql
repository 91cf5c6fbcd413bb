-- Tasks of stage jobs in the words of the earlier system, for its queries: those of the latest attempt that were sent. The
-- parameters of a plan that lies in the object store are not here.
CREATE OR REPLACE VIEW app.tasks AS
SELECT left(s.job_id, 8) || '-s' || stage.number || '-' || coalesce(task.name, item.position::text) AS task_id,
       s.job_id AS parent_job_id, d.body -> 'nodes' -> f.node_id::text -> 'task' ->> 'handler' AS task_type,
       CASE coalesce(n.status, 'dispatched')
            WHEN 'completed' THEN 'COMPLETED' WHEN 'running' THEN 'PROCESSING' WHEN 'failed' THEN 'FAILED'
            WHEN 'cancelled' THEN 'CANCELLED' WHEN 'skipped' THEN 'CANCELLED' ELSE 'QUEUED' END AS status,
       stage.number AS stage, coalesce(task.name, item.position::text) AS task_index,
       (p.output -> 'tasks' -> item.position) - '__stage_task_id__' AS parameters,
       (SELECT r.output FROM dagapp.dag_task_results AS r WHERE r.task_id = n.task_id AND n.status = 'completed')
           AS result_data,
       (SELECT r.output -> 'next_stage_params'
        FROM dagapp.dag_task_results AS r WHERE r.task_id = n.task_id AND n.status = 'completed') AS next_stage_params,
       n.error_message AS error_details,
       CASE WHEN n.status = 'failed' THEN greatest(n.retry_count - 1, 0) ELSE coalesce(n.retry_count, 0) END AS retry_count,
       (SELECT i.heartbeat_at FROM dagapp.dag_instances AS i WHERE i.instance_id = n.worker_id AND n.status = 'running')
           AS heartbeat,
       s.run_id, n.task_id AS engine_task_id,
       coalesce(n.dispatched_at, f.started_at, f.updated_at) AS created_at,
       coalesce(n.updated_at, f.started_at, f.updated_at) AS updated_at
FROM dagapp.dag_stage_jobs AS s
JOIN dagapp.dag_jobs AS j ON j.job_id = s.run_id
JOIN dagapp.dag_definitions AS d ON d.definition_hash = j.definition_hash
JOIN dagapp.dag_node_states AS f ON f.job_id = s.run_id AND f.item_index = -1 AND f.node_id LIKE 'stage%\_tasks'
CROSS JOIN LATERAL (SELECT substring(f.node_id FROM '[0-9]+')::integer AS number) AS stage
CROSS JOIN LATERAL generate_series(0, f.items_sent - 1) AS item (position)
LEFT JOIN dagapp.dag_node_states AS n
    ON n.job_id = s.run_id AND n.node_id = f.node_id AND n.item_index = item.position
LEFT JOIN dagapp.dag_node_states AS p
    ON p.job_id = s.run_id AND p.node_id = 'stage' || stage.number || '_plan' AND p.item_index = -1
CROSS JOIN LATERAL (SELECT p.output -> 'indexes' ->> item.position AS name) AS task
WHERE NOT EXISTS (
    SELECT
    FROM dagapp.dag_stage_jobs AS later
    JOIN dagapp.dag_jobs AS claimed ON claimed.job_id = later.run_id
    WHERE later.job_id = s.job_id AND later.attempt > s.attempt
);
