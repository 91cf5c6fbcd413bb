"""No request leads to an internal server error."""

from __future__ import annotations

import json
from typing import Any

from httpx import AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JOBS = "/api/v1/jobs"
any_text = st.text(st.characters(codec=None), max_size=80)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
NAMES = ["workflow_id", "inputs", "input_params", "priority", "idempotency_key", "correlation_id", "callback_url"]
bodies = values | st.dictionaries(st.sampled_from(NAMES) | any_text, values, max_size=6)
likely = st.fixed_dictionaries(
    {"workflow_id": st.sampled_from(["hello_world", "echo_test", "fan_out_test"])},
    optional={
        "inputs": st.dictionaries(st.sampled_from(["name", "message", "count", "item_list"]), values, max_size=4),
        "priority": st.integers(-1, 11) | values,
        "idempotency_key": any_text,
        "correlation_id": any_text,
        "callback_url": any_text,
    },
)
relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def sound(answer: Any) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"]


@relaxed
@given(body=bodies | likely)
async def test_any_json(idle: AsyncClient, body: Any) -> None:
    content = json.dumps(body).encode()
    sound(await idle.post(JOBS, content=content, headers={"content-type": "application/json"}))


@relaxed
@given(content=st.binary(max_size=200), kind=st.sampled_from(["application/json", "text/plain", "", "a/b; c=\x80"]))
async def test_any_bytes(idle: AsyncClient, content: bytes, kind: str) -> None:
    headers = {"content-type": kind.encode("latin-1")}
    sound(await idle.post(JOBS, content=content, headers=headers))


@relaxed
@given(
    job_id=any_text.filter(lambda text: text.strip("./")),
    query=st.dictionaries(
        st.sampled_from(["status", "limit", "cursor", "after", "workflow_id", "correlation_id", "x"]),
        st.text(max_size=40) | st.integers(),
        max_size=4,
    ),
    action=st.sampled_from(["", "/events", "/cancel", "/retry", "/pause"]),
)
async def test_any_place(idle: AsyncClient, job_id: str, query: dict[str, Any], action: str) -> None:
    from urllib.parse import quote

    place = quote(job_id.encode("utf-8", "replace"), safe="")
    method = "POST" if action in ("/cancel", "/retry", "/pause") else "GET"
    sound(await idle.request(method, f"{JOBS}/{place}{action}", params=query))
    sound(await idle.get(JOBS, params=query))
