"""The invariants at the end of a run: the tables must agree with the orders of users and the ledger of handlers. Each
query finds violations; all must find none."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.chaos.ledger import LedgerEntry
from tests.chaos.platform import ChaosPlatform
from tests.chaos.users import Order

EXPECTED = """
DROP TABLE IF EXISTS chaos.expected, chaos.ledger;
CREATE TABLE chaos.expected (job_id text PRIMARY KEY, workflow_id text, verdict text, result jsonb, accepted boolean);
CREATE TABLE chaos.ledger (
    what text, task_id text, job_id text, node_id text, item_index int, attempt int, pid int, at float8);
CREATE INDEX ON chaos.ledger (task_id);
"""

VIOLATIONS = {
    "lost: an accepted job is missing": """
        SELECT e.job_id FROM chaos.expected e LEFT JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.job_id IS NULL AND e.accepted""",
    "doubled: a job that nobody ordered": """
        SELECT j.job_id FROM dagapp.dag_jobs j LEFT JOIN chaos.expected e USING (job_id)
        WHERE e.job_id IS NULL AND j.workflow_id IN ('chaos', 'hold', 'deadly')""",
    "lost: a job did not end": """
        SELECT j.job_id, j.status FROM chaos.expected e JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.completed_at IS NULL""",
    "lost: the last order about an asset failed": """
        SELECT j.job_id, j.workflow_id, j.error_message FROM dagapp.dag_jobs j
        JOIN app.geospatial_assets a ON a.adf_run_id = j.job_id
        WHERE j.workflow_id IN ('export_asset', 'withdraw_asset') AND j.status = 'failed'""",
    "wrong verdict: a job ended otherwise than it must": """
        SELECT j.job_id, j.workflow_id, j.status, j.error_message FROM chaos.expected e
        JOIN dagapp.dag_jobs j USING (job_id) WHERE j.completed_at IS NOT NULL AND j.status::text <> e.verdict""",
    "wrong verdict: a job's result is wrong": """
        SELECT j.job_id, j.result_data FROM chaos.expected e JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.status = 'completed' AND j.result_data IS DISTINCT FROM e.result""",
    "lost: a node or item did not end": """
        SELECT n.job_id, n.node_id, n.item_index, n.status FROM dagapp.dag_node_states n
        JOIN chaos.expected e USING (job_id) WHERE n.status IN ('pending', 'ready', 'dispatched', 'running')""",
    "lost: a fan-out that completed has an item without a row, or one that was never sent": """
        SELECT n.job_id, n.node_id, n.items_total, n.items_sent FROM dagapp.dag_node_states n
        WHERE n.item_index = -1 AND n.items_total IS NOT NULL AND n.status = 'completed'
          AND (n.items_sent <> n.items_total OR n.items_total <> (
              SELECT count(*) FROM dagapp.dag_node_states i
              WHERE i.job_id = n.job_id AND i.node_id = n.node_id AND i.item_index >= 0))""",
    "wrong verdict: a completed job has a node that neither completed nor was skipped": """
        SELECT n.job_id, n.node_id, n.status FROM dagapp.dag_node_states n JOIN dagapp.dag_jobs j USING (job_id)
        WHERE j.status = 'completed' AND n.status NOT IN ('completed', 'skipped')""",
    "doubled: two results of one node or item were applied": """
        SELECT job_id, node_id, item_index FROM dagapp.dag_task_results WHERE status = 'completed'
        GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    "lost: a completed task has no result": """
        SELECT n.task_id FROM dagapp.dag_node_states n LEFT JOIN dagapp.dag_task_results r USING (task_id)
        WHERE n.status = 'completed' AND n.worker_id IS NOT NULL AND r.task_id IS NULL""",
    "wrong verdict: a task counts as completed that no handler has ended": """
        SELECT n.task_id FROM dagapp.dag_task_results n JOIN chaos.expected e USING (job_id)
        LEFT JOIN chaos.ledger l ON l.task_id = n.task_id AND l.what = 'end'
        WHERE n.status = 'completed' AND l.task_id IS NULL""",
    "lost: a handler's work of a completed job was not counted": """
        SELECT l.job_id, l.node_id, l.item_index FROM chaos.ledger l JOIN dagapp.dag_jobs j USING (job_id)
        WHERE l.what = 'end' AND j.status = 'completed' AND NOT EXISTS (
            SELECT FROM dagapp.dag_task_results r WHERE r.job_id = l.job_id AND r.node_id = l.node_id
              AND r.item_index = l.item_index AND r.status = 'completed')""",
    "lost: a message or report was left behind": """
        SELECT 'queue', q.message_id FROM dagapp.dag_queue q JOIN chaos.expected e ON q.message_id LIKE e.job_id || '%'
        UNION ALL SELECT 'inbox', job_id FROM dagapp.dag_inbox JOIN chaos.expected USING (job_id)""",
    "doubled: a job ended more than once in the history": """
        SELECT job_id FROM dagapp.dag_job_events
        WHERE event_type IN ('job_completed', 'job_failed', 'job_cancelled') GROUP BY job_id HAVING count(*) <> 1""",
    "doubled: a node completed more than once in the history": """
        SELECT job_id, node_id FROM dagapp.dag_job_events
        WHERE event_type = 'node_completed' AND item_index = -1 GROUP BY 1, 2 HAVING count(*) > 1""",
    "wrong verdict: the history says something else than the state": """
        SELECT n.job_id, n.node_id, n.status FROM dagapp.dag_node_states n
        WHERE n.item_index = -1 AND n.status = 'completed' AND NOT EXISTS (
            SELECT FROM dagapp.dag_job_events e
            WHERE e.job_id = n.job_id AND e.node_id = n.node_id AND e.event_type = 'node_completed')""",
}


def violations(platform: ChaosPlatform, orders: Sequence[Order], lines: Sequence[LedgerEntry]) -> list[str]:
    platform.execute(EXPECTED)
    with platform.connect() as conn, conn.cursor() as cursor:
        with cursor.copy("COPY chaos.expected FROM STDIN") as copy:
            for order in orders:
                result = None if order.result is None else json.dumps(order.result)
                copy.write_row((order.job_id, order.workflow_id, order.verdict, result, order.accepted))
        with cursor.copy("COPY chaos.ledger FROM STDIN") as copy:
            for line in lines:
                copy.write_row(line)
    violated = []
    for what, query in VIOLATIONS.items():
        if rows := platform.rows(query):
            violated.append(f"{what}: {len(rows)}, such as {rows[:3]}")
    return violated
