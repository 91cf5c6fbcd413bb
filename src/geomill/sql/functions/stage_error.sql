-- Returns the error of a stage job's attempt with the names that its author knows: the stage and the task. A plan that
-- lies in the object store has no names here; then the position stands for the task.
CREATE OR REPLACE FUNCTION dagapp.stage_error(run_id text, failed_node text, error text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    stage text := substring(failed_node FROM '^stage(\d{1,4})_(?:plan|tasks|results|aggregate)$');
    cause text := regexp_replace(error, '^node ''[^'']*'' failed: ', '');
    place text := CASE WHEN failed_node LIKE '%\_tasks' THEN substring(cause FROM '^item (\d{1,9}): ') END;
    task text;
BEGIN
    IF stage IS NULL OR error IS NULL THEN
        RETURN error;
    ELSIF place IS NULL THEN
        RETURN CASE WHEN cause ~ ('\mstage ' || stage || '\M') THEN cause ELSE 'stage ' || stage || ': ' || cause END;
    END IF;
    SELECT n.output -> 'indexes' ->> place::integer INTO task
    FROM dagapp.dag_node_states AS n
    WHERE n.job_id = stage_error.run_id AND n.node_id = 'stage' || stage || '_plan' AND n.item_index = -1;
    RETURN format('stage %s, task %s: %s', stage, coalesce(task, place), regexp_replace(cause, '^item \d+: ', ''));
END
$$;
