"""Submissions of other applications: which job they order, and what they cannot set."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from geomill.domain.engine.foreign import ForeignSubmission
from geomill.domain.ids import id_of_key


def order(identity: str = "m1", queue_name: str = "dag-jobs", /, **fields: Any) -> Any:
    body = json.dumps({"workflow_id": "hello_world", **fields})
    return ForeignSubmission.of(body.encode()).order(queue_name, identity)


@given(st.text(min_size=1, max_size=128))
def test_the_same_message_is_the_same_job(message_id: str) -> None:
    assert order(message_id).job_id == order(message_id).job_id


def test_other_messages_and_queues_are_other_jobs() -> None:
    ids = {order("m1").job_id, order("m2").job_id, order("m1", "others").job_id}
    assert len(ids) == 3


def test_an_idempotency_key_gives_the_job_that_it_gives_over_http() -> None:
    assert order(idempotency_key="k").job_id == id_of_key("k")
    assert order("m1", idempotency_key="k").job_id == order("m2", idempotency_key="k").job_id


def test_the_body_s_message_id_and_job_id_come_first() -> None:
    assert order("m1", message_id="own").job_id == order("m2", message_id="own").job_id
    assert order(job_id="mine").job_id == "mine"


def test_who_sent_it_is_not_what_it_says() -> None:
    message = order(submitted_by="ddh", asset_id="a", tenant="ddh", purpose="export", request_id="r", inputs={"a": 1})
    assert (message.submitted_by, message.on_behalf_of) == ("service-bus", "ddh")
    assert (message.asset_id, message.tenant, message.request_id, message.purpose) == (None, "", None, "process")
    assert message.input_params == {"a": 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"workflow_id": ""},
        {"workflow_id": "x" * 65},
        {"workflow_id": "a\x00b"},
        {"priority": 11},
        {"job_id": "../../silver"},
        {"job_id": "%"},
        {"job_id": "a:b"},
        {"job_id": "a\n"},
        {"job_id": "x" * 65},
        {"submitted_at": "9999-12-31T23:59:59-12:00"},
        {"submitted_at": "1999-12-31T23:59:59Z"},
        {"priority": -1},
        {"input_params": [1]},
        {"input_params": {"a": "\x00"}},
        {"input_params": {"\ud800": 1}},
        {"callback_url": "x" * 513},
        {"submitted_at": "2026-01-01T00:00:00"},
    ],
)
def test_what_cannot_be_stored_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        order(**fields)
