"""What must be true at the end, read from the tables alone. Each query finds violations; all must find none."""

from __future__ import annotations

from tests.chaos.platform import ChaosPlatform

VIOLATIONS = {
    "a submitted job is missing": """
        SELECT e.job_id FROM chaos.expected e LEFT JOIN dagapp.dag_jobs j USING (job_id) WHERE j.job_id IS NULL""",
    "a job has another verdict than expected": """
        SELECT j.job_id, j.status, j.error_message FROM chaos.expected e JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.status::text <> e.verdict""",
    "a job's result is wrong": """
        SELECT j.job_id, j.result_data FROM chaos.expected e JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.status = 'completed'
          AND j.result_data IS DISTINCT FROM jsonb_build_object('items', e.size, 'steps', 4)""",
    "a node or item did not end": """
        SELECT job_id, node_id, item_index, status FROM dagapp.dag_node_states
        WHERE status IN ('pending', 'ready', 'dispatched', 'running')""",
    "a fan-out that completed has an item without a row, or one that was never sent": """
        SELECT n.job_id, n.node_id, n.items_total, n.items_sent FROM dagapp.dag_node_states n
        WHERE n.item_index = -1 AND n.items_total IS NOT NULL AND n.status = 'completed'
          AND (n.items_sent <> n.items_total OR n.items_total <> (
              SELECT count(*) FROM dagapp.dag_node_states i
              WHERE i.job_id = n.job_id AND i.node_id = n.node_id AND i.item_index >= 0))""",
    "a completed job has a node that neither completed nor was skipped": """
        SELECT n.job_id, n.node_id, n.status FROM dagapp.dag_node_states n JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.status = 'completed' AND n.status NOT IN ('completed', 'skipped')""",
    "two results of one node or item were applied": """
        SELECT job_id, node_id, item_index FROM dagapp.dag_task_results WHERE status = 'completed'
        GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    "a completed task has no result": """
        SELECT n.task_id FROM dagapp.dag_node_states n LEFT JOIN dagapp.dag_task_results r USING (task_id)
        WHERE n.status = 'completed' AND n.worker_id IS NOT NULL AND r.task_id IS NULL""",
    "an effect of a completed job is missing": """
        SELECT j.job_id, k.key FROM chaos.expected e JOIN dagapp.dag_jobs j USING (job_id)
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['plan', 'steady', 'after']) AS key
            UNION ALL SELECT 'item-' || i FROM generate_series(0, e.size - 1) AS i
        ) AS k
        LEFT JOIN chaos.effects f ON f.effect_key = j.job_id || '/' || k.key
        WHERE j.status = 'completed' AND f.effect_key IS NULL""",
    "a message or report was left behind": """
        SELECT 'queue', message_id FROM dagapp.dag_queue UNION ALL SELECT 'inbox', job_id FROM dagapp.dag_inbox""",
    "a job ended more than once in the history": """
        SELECT job_id FROM dagapp.dag_job_events
        WHERE event_type IN ('job_completed', 'job_failed', 'job_cancelled') GROUP BY job_id HAVING count(*) <> 1""",
    "a node completed more than once in the history": """
        SELECT job_id, node_id FROM dagapp.dag_job_events
        WHERE event_type = 'node_completed' AND item_index = -1 GROUP BY 1, 2 HAVING count(*) > 1""",
    "the history says something else than the state": """
        SELECT n.job_id, n.node_id, n.status FROM dagapp.dag_node_states n
        WHERE n.item_index = -1 AND n.status = 'completed' AND NOT EXISTS (
            SELECT FROM dagapp.dag_job_events e
            WHERE e.job_id = n.job_id AND e.node_id = n.node_id AND e.event_type = 'node_completed')""",
}


def violations(platform: ChaosPlatform) -> list[str]:
    found = []
    for what, query in VIOLATIONS.items():
        rows = platform.rows(query)
        if rows:
            found.append(f"{what}: {len(rows)}, such as {rows[:3]}")
    return found
