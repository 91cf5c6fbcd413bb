-- Jobs in the words of the earlier system, for its queries: one row for each job. A stage job is shown with its latest
-- attempt. A plain job has no stages; its type is its workflow. A job that no orchestrator has claimed yet waits on the
-- queue of jobs, or on the one for unknown workflows. (IN with a varchar reads differently after a dump, so it is = ANY.)
CREATE OR REPLACE VIEW app.jobs AS
SELECT j.job_id, j.workflow_id AS job_type,
       CASE j.status WHEN 'pending' THEN 'QUEUED' WHEN 'running' THEN 'PROCESSING' WHEN 'completed' THEN 'COMPLETED'
            ELSE 'FAILED' END AS status,
       NULL::integer AS stage, NULL::integer AS total_stages, j.input_params AS parameters, '{}'::jsonb AS stage_results,
       j.result_data, j.error_message AS error_details,
       jsonb_build_object('submitted_by', j.submitted_by, 'on_behalf_of', j.on_behalf_of,
                          'correlation_id', j.correlation_id, 'cancelled', j.status = 'cancelled') AS metadata,
       j.asset_id, j.job_id AS run_id, j.created_at, j.updated_at
FROM dagapp.dag_jobs AS j
WHERE NOT EXISTS (SELECT FROM dagapp.dag_stage_jobs AS s WHERE s.run_id = j.job_id)
UNION ALL
SELECT s.job_id, s.job_type,
       CASE j.status WHEN 'pending' THEN 'QUEUED' WHEN 'running' THEN 'PROCESSING' WHEN 'completed' THEN 'COMPLETED'
            ELSE 'FAILED' END,
       (SELECT least(count(*) FILTER (WHERE n.node_id LIKE '%\_aggregate' AND n.status = 'completed') + 1,
                     count(*) FILTER (WHERE n.node_id LIKE '%\_plan'))::integer
        FROM dagapp.dag_node_states AS n
        WHERE n.job_id = s.run_id AND n.item_index = -1 AND n.node_id LIKE 'stage%'),
       (SELECT count(*)::integer
        FROM dagapp.dag_node_states AS n
        WHERE n.job_id = s.run_id AND n.item_index = -1 AND n.node_id LIKE 'stage%\_plan'),
       s.parameters,
       coalesce((SELECT jsonb_object_agg('stage_' || substring(n.node_id FROM '[0-9]+'), n.output -> 'result')
                 FROM dagapp.dag_node_states AS n
                 WHERE n.job_id = s.run_id AND n.item_index = -1 AND n.node_id LIKE 'stage%\_aggregate'
                   AND n.status = 'completed'), '{}'),
       j.result_data, j.error_message,
       jsonb_build_object('submitted_by', j.submitted_by, 'on_behalf_of', j.on_behalf_of,
                          'correlation_id', j.correlation_id, 'cancelled', j.status = 'cancelled', 'attempt', s.attempt),
       j.asset_id, s.run_id, s.submitted_at, j.updated_at
FROM dagapp.dag_stage_jobs AS s
JOIN dagapp.dag_jobs AS j ON j.job_id = s.run_id
WHERE NOT EXISTS (
    SELECT
    FROM dagapp.dag_stage_jobs AS later
    WHERE later.job_id = s.job_id AND later.attempt > s.attempt
      AND (EXISTS (SELECT FROM dagapp.dag_jobs AS claimed WHERE claimed.job_id = later.run_id)
           OR EXISTS (SELECT FROM dagapp.dag_queue AS q
                      WHERE q.queue_name = ANY ('{dag-jobs,dag-jobs.unknown}'::text[]) AND q.message_id = later.run_id))
)
UNION ALL
SELECT coalesce(s.job_id, q.message_id)::varchar(64), coalesce(s.job_type, q.body ->> 'workflow_id')::varchar(64),
       'QUEUED', NULL::integer, NULL::integer,
       coalesce(s.parameters, q.body -> 'input_params', '{}'), '{}'::jsonb, NULL::jsonb, NULL::text,
       jsonb_build_object('submitted_by', q.body -> 'submitted_by', 'on_behalf_of', q.body -> 'on_behalf_of',
                          'correlation_id', q.body -> 'correlation_id', 'cancelled', false)
       || CASE WHEN s.attempt IS NULL THEN '{}' ELSE jsonb_build_object('attempt', s.attempt) END,
       (q.body ->> 'asset_id')::varchar(64), q.message_id::varchar(64), q.enqueued_at, q.enqueued_at
FROM dagapp.dag_queue AS q
LEFT JOIN dagapp.dag_stage_jobs AS s ON s.run_id = q.message_id
WHERE q.queue_name = ANY ('{dag-jobs,dag-jobs.unknown}'::text[])
  AND NOT EXISTS (SELECT FROM dagapp.dag_jobs AS j WHERE j.job_id = q.message_id);
