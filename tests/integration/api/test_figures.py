"""Looking costs little, however much there is."""

from __future__ import annotations

import json
from typing import Any

from geomill.sql import queries
from geomill.store import metrics
from geomill.store.pool import Pool


async def test_steps_are_sampled_from_the_newest_pages_only(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, completed_at) VALUES ('j', 'w', 'failed', now())"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, attempt, status, output, started_at)"
            " SELECT 'j:n:' || n, 'j', 'n', n, 'completed', '{}', now() - interval '1 s'"
            " FROM generate_series(1, 40000) AS n"
        )
        await conn.execute("ANALYZE dagapp.dag_task_results")
        parameters: dict[str, Any] = {"pages": 64, "window_seconds": 300.0, "sample": 20_000, "quantiles": [0.5]}
        explain: Any = "EXPLAIN (ANALYZE, FORMAT JSON) " + queries("metrics").step_latency
        row = await (await conn.execute(explain, parameters)).fetchone()
        assert row is not None
        text = json.dumps(row)
        assert "Tid Range Scan" in text
        found = await metrics.step_latency(conn)
    assert 1000 < found.steps <= 20_000
    assert 0.9 < found.run[0.5] < 60
