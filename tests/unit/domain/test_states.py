"""The state machines: every pair of states, legal or not."""

from __future__ import annotations

import itertools

import pytest

from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, JobStatus, Machine, NodeStatus
from geomill.errors import IllegalTransition

JOB_STEPS = {
    "pending": "running completed failed cancelled",
    "running": "completed failed cancelled",
}
NODE_STEPS = {
    "pending": "ready skipped",
    "ready": "dispatched skipped completed failed",
    "dispatched": "running completed failed cancelled",
    "running": "completed failed cancelled",
    "failed": "ready",
}
PAIRS = [
    (machine, source, target, str(target) in steps.get(source, "").split())
    for machine, states, steps in ((JOB_MACHINE, JobStatus, JOB_STEPS), (NODE_MACHINE, NodeStatus, NODE_STEPS))
    for source, target in itertools.product(states, states)
]


def _name(value: object) -> str:
    return value.name if isinstance(value, Machine) else str(value)


@pytest.mark.parametrize(("machine", "source", "target"), [pair[:3] for pair in PAIRS if pair[3]], ids=_name)
def test_a_legal_step_is_taken(machine: Machine, source: str, target: str) -> None:
    machine.check(source, target)


@pytest.mark.parametrize(("machine", "source", "target"), [pair[:3] for pair in PAIRS if not pair[3]], ids=_name)
def test_an_illegal_step_is_refused_and_both_states_are_named(machine: Machine, source: str, target: str) -> None:
    with pytest.raises(IllegalTransition) as caught:
        machine.check(source, target)
    assert f"a {machine.name} cannot go from {source} to {target}" in str(caught.value)
    assert (caught.value.source, caught.value.target) == (source, target)


def test_the_refusal_says_what_may_follow() -> None:
    with pytest.raises(IllegalTransition, match="after pending comes ready, skipped"):
        NODE_MACHINE.check(NodeStatus.PENDING, NodeStatus.COMPLETED)
    with pytest.raises(IllegalTransition, match="after completed comes nothing, because it is final"):
        JOB_MACHINE.check(JobStatus.COMPLETED, JobStatus.RUNNING)


def test_a_terminal_state_is_never_left_but_for_a_retry() -> None:
    assert all(not JOB_MACHINE.steps[state] for state in JOB_MACHINE.terminal)
    assert {state: NODE_MACHINE.steps[state] for state in NODE_MACHINE.terminal if NODE_MACHINE.steps[state]} == {
        NodeStatus.FAILED: {NodeStatus.READY}
    }


def test_every_state_is_in_its_machine() -> None:
    assert set(JOB_MACHINE.steps) == set(JobStatus)
    assert set(NODE_MACHINE.steps) == set(NodeStatus)
    assert JOB_MACHINE.terminal == {state for state in JobStatus if state not in ("pending", "running")}


@pytest.mark.parametrize("machine", [JOB_MACHINE, NODE_MACHINE], ids=_name)
def test_a_commit_may_take_several_steps_at_once_or_reopen(machine: Machine) -> None:
    """A commit may take any path of steps, or reopen. The closure is computed here by squaring the relation until it no
    longer grows."""
    closure = {(source, target) for source, targets in machine.steps.items() for target in targets}
    while more := {(a, d) for a, b in closure for c, d in closure if b == c} - closure:
        closure |= more
    reopened = {(source, target) for source, targets in machine.reopens.items() for target in targets}
    commits = {(source, target) for source, targets in machine.commits.items() for target in targets}
    assert commits == {(source, target) for source, target in closure if source != target} | reopened


def test_only_what_ended_without_success_is_reopened() -> None:
    assert set(JOB_MACHINE.reopens) == JOB_MACHINE.terminal - {JobStatus.COMPLETED}
    assert set(NODE_MACHINE.reopens) == NODE_MACHINE.terminal - {NodeStatus.COMPLETED}
    assert not JOB_MACHINE.commits[JobStatus.COMPLETED]
    assert not NODE_MACHINE.commits[NodeStatus.COMPLETED]


def test_reopening_is_never_joined_with_other_steps() -> None:
    assert JOB_MACHINE.commits[JobStatus.CANCELLED] == {JobStatus.RUNNING}
    assert NODE_MACHINE.commits[NodeStatus.SKIPPED] == {NodeStatus.PENDING}
    with pytest.raises(IllegalTransition):
        JOB_MACHINE.check(JobStatus.FAILED, JobStatus.RUNNING)
