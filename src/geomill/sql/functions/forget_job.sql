-- What belongs to a deleted job goes with it, from the tables that have no foreign key to see to it: rows are added to
-- them by the thousand, under the lock of the job's owner, and asking for the job at each would cost more than it tells.
-- Results are found by their names, which follow from the nodes: they have no other index. Items of a fan-out under way
-- may have a result and no row.
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
