-- What belongs to a deleted job goes with it, from the tables that have no foreign key to see to it: rows are added to
-- them by the thousand, under the lock of the job's owner, and asking for the job at each would cost more than it tells.
CREATE OR REPLACE FUNCTION dagapp.forget_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog
AS $$
BEGIN
    DELETE FROM dagapp.dag_node_states WHERE job_id = OLD.job_id;
    DELETE FROM dagapp.dag_task_results WHERE job_id = OLD.job_id;
    RETURN NULL;
END
$$;
