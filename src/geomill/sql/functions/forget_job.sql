-- Deletes the nodes and results of a deleted job. Their tables have no foreign key to the job: rows are added by the
-- thousand, under the lock of the job's owner, and checking the job for each would be expensive. Results are found by
-- their task ids, which follow from the nodes, because they have no other index. Items of a fan-out under way may have a
-- result but no row.
CREATE OR REPLACE FUNCTION dagapp.forget_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
BEGIN
    WITH gone AS (
        DELETE FROM dagapp.dag_node_states WHERE job_id = OLD.job_id
        RETURNING job_id, node_id, item_index, attempt, items_sent, status
    )
    DELETE FROM dagapp.dag_task_results AS r
    USING (SELECT job_id || ':' || node_id || CASE WHEN item_index >= 0 THEN '[' || item_index || ']' ELSE '' END
                  || ':' || number AS task_id
           FROM gone, generate_series(1, attempt) AS number
           UNION ALL
           SELECT job_id || ':' || node_id || '[' || item || ']:1'
           FROM gone, generate_series(0, items_sent - 1) AS item
           WHERE status = 'running'
           OFFSET 0) AS attempts
    WHERE r.task_id = ANY (ARRAY[attempts.task_id]);
    RETURN NULL;
END
$$;
