"""The bodies of queue messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from geomill.domain.engine.message import JobQueueMessage, TaskMessage

TASK = {"task_id": "j:n:1", "job_id": "j", "node_id": "n", "handler": "echo", "timeout_seconds": 5, "attempt": 1}


@pytest.mark.parametrize("name", ["input_params", "inputs"])
def test_inputs_have_two_names(name: str) -> None:
    message = JobQueueMessage.model_validate({"workflow_id": "w", name: {"a": 1}})
    assert message.input_params == {"a": 1}


def test_of_both_names_input_params_wins() -> None:
    message = JobQueueMessage.model_validate({"workflow_id": "w", "inputs": {"a": 1}, "input_params": {"b": 2}})
    assert message.input_params == {"b": 2}


def test_a_job_message_gets_ids_of_its_own() -> None:
    first, second = (JobQueueMessage(workflow_id="w") for _ in range(2))
    assert len({first.job_id, first.message_id, second.job_id, second.message_id}) == 4
    assert UUID(first.job_id).version == UUID(first.message_id).version == 7


def test_a_job_message_without_more_has_defaults() -> None:
    message = JobQueueMessage(workflow_id="w")
    assert (message.input_params, message.priority, message.submitted_at) == ({}, 0, None)


@pytest.mark.parametrize(
    "message",
    [
        JobQueueMessage(workflow_id="w", input_params={"a": [1]}, priority=3, submitted_at=datetime.now(UTC)),
        TaskMessage(**TASK, params={"x": None}, item_index=4, retry_count=2),
    ],
)
def test_a_message_survives_the_queue(message: BaseModel) -> None:
    assert type(message).model_validate_json(message.model_dump_json()) == message


def test_what_a_newer_sender_adds_is_ignored() -> None:
    assert JobQueueMessage.model_validate({"workflow_id": "w", "colour": "red"}).workflow_id == "w"
    assert TaskMessage.model_validate({**TASK, "colour": "red"}).item_index == -1


@pytest.mark.parametrize(
    "wrong",
    [
        {"workflow_id": ""},
        {"workflow_id": "x" * 65},
        {"priority": 11},
        {"priority": -6},
        {"inputs": [1]},
        {"submitted_at": "2026-01-01T00:00:00"},
        {"callback_url": "x" * 513},
    ],
)
def test_a_wrong_job_message_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JobQueueMessage.model_validate({"workflow_id": "w", **wrong})


@pytest.mark.parametrize("wrong", [{"timeout_seconds": 0}, {"attempt": None}, {"handler": ""}, {"task_id": "x" * 201}])
def test_a_wrong_task_message_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TaskMessage.model_validate({**TASK, **wrong})


@pytest.mark.parametrize("depth", [1, 150, 500])
def test_a_task_is_read_however_deep_its_parameters_are(depth: int) -> None:
    value: Any = 1.5
    for _ in range(depth):
        value = [value, 10**25]
    assert TaskMessage.received(json.dumps({**TASK, "params": {"a": value}})).params == {"a": value}


@pytest.mark.parametrize("body", ["[1]", "7", "null", '{"task_id": "t"}', json.dumps({**TASK, "attempt": "two"}), "{"])
def test_a_task_that_is_none_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match=r"task_id|TaskMessage|Expecting"):
        TaskMessage.received(body)
