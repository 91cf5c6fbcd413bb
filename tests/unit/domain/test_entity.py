"""The base of the stored models."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from geomill.domain.engine.instance import Instance, InstanceRole
from geomill.domain.engine.job import Job
from geomill.domain.engine.node import NodeState
from geomill.domain.states import JobStatus, NodeStatus
from geomill.domain.tables import TABLES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = {"submitted_at": NOW, "created_at": NOW, "updated_at": NOW}


def job(**changes: Any) -> Job:
    return Job.model_validate({"job_id": "j1", "workflow_id": "w", **TIMES, **changes})


def test_an_entity_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        job().status = JobStatus.RUNNING


def test_evolve_gives_a_changed_copy() -> None:
    before = job(input_params={"a": 1})
    after = before.evolve(status=JobStatus.RUNNING, started_at=NOW)
    assert (after.status, after.started_at, after.input_params) == (JobStatus.RUNNING, NOW, {"a": 1})
    assert before.status is JobStatus.PENDING
    assert type(after) is Job


@pytest.mark.parametrize(
    "wrong", [{"status": "nonsense"}, {"priority": 11}, {"job_id": ""}, {"job_id": "x" * 65}, {"colour": "red"}]
)
def test_evolve_validates(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        job().evolve(**wrong)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        job(created_at=datetime(2026, 1, 1))  # noqa: DTZ001  that is the point


def test_from_row_reads_what_the_database_gives() -> None:
    row = {"job_id": "j1", "node_id": "a", "status": "running", "created_at": NOW, "updated_at": NOW, "attempt": 2}
    state = NodeState.from_row(row)
    assert (state.status, state.attempt, state.item_index) == (NodeStatus.RUNNING, 2, -1)
    assert "status" in row


def test_from_row_leaves_out_what_a_newer_release_has_added() -> None:
    loaded = Job.from_row({"job_id": "j1", "workflow_id": "w", **TIMES, "surprise": 1})
    assert loaded.job_id == "j1"
    with pytest.raises(ValidationError, match="surprise"):
        Job(job_id="j1", workflow_id="w", **TIMES, surprise=1)


def test_log_context_has_the_primary_key_unless_the_model_names_its_fields() -> None:
    state = NodeState(job_id="j1", node_id="a", created_at=NOW, updated_at=NOW)
    assert state.log_context() == {"job_id": "j1", "node_id": "a", "item_index": -1}
    assert job().log_context() == {"job_id": "j1", "workflow_id": "w"}
    instance = Instance(
        instance_id="i", role="worker", hostname="h", pid=1, lock_key=2, version="1", started_at=NOW, heartbeat_at=NOW
    )
    assert instance.log_context() == {"instance_id": "i", "role": InstanceRole.WORKER}


def test_the_outcome_of_a_job_is_what_its_submitter_wants_to_know() -> None:
    ended = job(status="failed", error_message="no", completed_at=NOW)
    assert ended.outcome() == {"job_id": "j1", "status": "failed", "result": None, "error": "no"}
    done = job(status="completed", result_data={"a": 1}, completed_at=NOW)
    assert done.outcome() == {"job_id": "j1", "status": "completed", "result": {"a": 1}, "error": None}


def test_every_table_comes_after_those_it_refers_to() -> None:
    earlier: set[str] = set()
    for model in TABLES:
        earlier.add(f"{model.__sql_schema__}.{model.__sql_table__}")
        assert {key.table for key in model.__sql_foreign_keys__} <= earlier
