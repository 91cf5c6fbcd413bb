"""A newer release migrates the database while a gateway works: nobody who calls it notices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.desk import order
from tests.integration.migrations import add_columns, widen_columns, widen_requests

OFTEN = 8
"""Until every statement is prepared."""


async def use(counter: Any, prefix: str) -> list[tuple[str, int]]:
    """Act as a partner, a reviewer and an operator. Return each act with the status of its answer."""
    answers = []
    for number in range(OFTEN):
        refs = {"dataset_id": "d", "resource_id": f"{prefix}-{number}", "version_id": "v1"}
        submitted = await counter.post("submit", order(platform_refs=refs))
        answers.append(submitted)
        answers.append(await counter.post("submit", order(platform_refs=refs, overwrite=True)))
        asset_id = submitted.json().get("asset_id", "none")
        answers.append(await counter.get(f"/api/platform/status/{asset_id}"))
        answers.append(await counter.get(f"/api/assets/{asset_id}"))
        answers.append(await counter.get("/api/assets"))
        answers.append(await counter.get("/api/v1/jobs"))
        job = await counter.client.post("/api/v1/jobs", json={"workflow_id": "hello_world"})
        answers.append(job)
    return [(f"{answer.request.method} {answer.request.url.path}", answer.status_code) for answer in answers]


@pytest.mark.parametrize("migrate", [add_columns, widen_columns, widen_requests])
async def test_every_answer_is_as_before(make_counter: Any, migrate: Any) -> None:
    counter = await make_counter(pool_size=1)
    before = await use(counter, "before")
    assert {status for _, status in before} == {200, 202}
    migrate(counter.url)
    after = await use(counter, "after")
    assert [answer for answer in after if answer[1] >= 300] == []
