"""Definitions of stages: which are valid, and how they are described."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from geomill.domain.engine.retry import RetryPolicy
from geomill.errors import SettingsError
from geomill.stages import StageController, StageDefinition, WorkflowDefinition, stage_job
from geomill.stages.definitions import from_plain
from geomill.stages.registration import STAGE_MARK
from tests.unit.stages.jobs import controller, job_of


def stage(number: int, **more: Any) -> dict[str, Any]:
    return {"stage_number": number, "stage_name": f"s{number}", "task_type": "echo", **more}


class TwoStages(WorkflowDefinition):
    """A class with defaults, as the stage model shows it."""

    job_type: str = "two"
    stages: list[StageDefinition] = [StageDefinition(**stage(1)), StageDefinition(**stage(2, depends_on_stage=1))]  # noqa: RUF012


def test_stages_are_counted_and_a_class_with_defaults_is_one() -> None:
    assert TwoStages().total_stages == 2
    assert TwoStages().stage(2).timeout_minutes == 30


@pytest.mark.parametrize(
    ("stages", "more", "words"),
    [
        ([], {}, "1 to 100 stages, not 0"),
        ([stage(2)], {}, "has the number 2, not 1"),
        ([stage(1), stage(1)], {}, "has the number 1, not 2"),
        ([stage(1), stage(2, stage_name="s1")], {}, "the same name"),
        ([stage(1), stage(2), stage(3, depends_on_stage=1)], {}, "stages run one after the other"),
        ([stage(1, depends_on_stage=0)], {}, "depends on stage 0"),
        ([stage(1)], {"total_stages": 3}, "total_stages is 3, but there are 1"),
        ([stage(1, max_parallel_tasks=0)], {}, "greater than or equal to 1"),
        ([stage(1, allow_partial="half")], {}, "allow_partial"),
        ([stage(1, timeout_minutes=0)], {}, "greater than 0"),
        ([stage(1, parallel=3)], {}, "parallel"),
        ([stage(1)], {"job_type": "with space"}, "job_type"),
        ([stage(1)], {"job_type": "x" * 49}, "job_type"),
    ],
)
def test_what_cannot_be(stages: list[dict[str, Any]], more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        WorkflowDefinition.model_validate({"job_type": "tried", "stages": stages, **more})


def test_retries_are_the_stages_or_the_task_types_or_the_usual() -> None:
    often, once = RetryPolicy(max_attempts=9), RetryPolicy(max_attempts=1)
    job = job_of({}, {"retry": once}, {"task_type": "sleep"}, retries={"echo": often})
    assert [job.definition.retry_of(definition) for definition in job.definition.stages] == [often, once, RetryPolicy()]


def test_the_least_limit_counts() -> None:
    job = job_of({"max_parallel_tasks": 5}, {"max_parallel_tasks": 50}, {}, max_parallel_tasks=10)
    assert [job.parallel(number) for number in (1, 2, 3)] == [5, 10, 10]
    assert job_of({}).parallel(1) is None


def test_plain_dicts() -> None:
    definition = from_plain("p", [{"number": 1, "name": "n", "task_type": "echo", "parallelism": "single"}])
    assert (definition.stage(1).stage_name, definition.stage(1).single) == ("n", True)


def test_a_registration_that_does_not_fit() -> None:
    with pytest.raises(SettingsError, match="registered with the workflow of 'two'"):
        stage_job("other", workflow=TwoStages)(StageController)


def test_a_workflow_that_is_wrong_names_its_job_type() -> None:
    class Wrong(WorkflowDefinition):
        job_type: str = "wrong"
        stages: list[StageDefinition] = []  # noqa: RUF012

    with pytest.raises(SettingsError, match="the stages of 'wrong' are wrong"):
        stage_job("wrong", workflow=Wrong)(StageController)


def test_a_job_type_is_described_by_its_own_words() -> None:
    """The description is the class's own docstring, not that of its base class."""
    definition = from_plain("tried", [{"number": 1, "name": "one", "task_type": "echo"}])

    class Documented(controller()):  # type: ignore[misc]  # a class that is made by a function
        """Says what it does.

        And more."""

    marked = [
        stage_job("tried", workflow=definition)(controller_class) for controller_class in (controller(), Documented)
    ]
    assert [getattr(controller_class, STAGE_MARK).description for controller_class in marked] == [
        "",
        "Says what it does.",
    ]
