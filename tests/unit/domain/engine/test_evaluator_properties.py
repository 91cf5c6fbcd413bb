"""Properties of the evaluator over random graphs, random fates and random orders of arrival."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.engine.run import RunState
from geomill.domain.engine.workflow import Workflow
from geomill.domain.ids import SINGLE
from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, JobStatus, NodeStatus
from tests.unit.domain.engine.simulation import NOW, World, workflows, world

SEEDS = st.integers(0, 10_000)
FINAL = NODE_MACHINE.terminal - {NodeStatus.FAILED}
thorough = settings(max_examples=120, deadline=None)


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_every_job_ends_and_every_node_ends_once(workflow: Workflow, fate: int, order: int) -> None:
    played = world(workflow, fate=fate, order=order)
    played.play()
    assert played.run.status in JOB_MACHINE.terminal
    assert all(node.terminal for node in played.run.nodes.values())
    assert not played.run.fan_outs
    assert all(row.status in NODE_MACHINE.terminal for row in played.rows.values())
    endings = Counter((s.node_id, s.item_index) for s in _steps(played) if s.target in FINAL)
    assert max(endings.values(), default=0) <= 1


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_no_node_begins_before_its_dependencies_have_ended(workflow: Workflow, fate: int, order: int) -> None:
    played = world(workflow, fate=fate, order=order)
    played.play()
    status = dict.fromkeys(played.graph.nodes, NodeStatus.PENDING)
    for step in _steps(played):
        if step.item_index != SINGLE:
            continue
        if step.source is NodeStatus.PENDING and step.target is NodeStatus.READY:
            before = [status[source] for source in played.graph.nodes[step.node_id].dependencies]
            assert all(state in NODE_MACHINE.terminal for state in before)
            assert not before or any(state in (NodeStatus.COMPLETED, NodeStatus.FAILED) for state in before)
        status[step.node_id] = step.target


@thorough
@given(workflows(), SEEDS, SEEDS, SEEDS)
def test_the_verdict_does_not_depend_on_the_order(
    workflow: Workflow, fate: int, first_order: int, second_order: int
) -> None:
    first, second = world(workflow, fate=fate, order=first_order), world(workflow, fate=fate, order=second_order)
    first.play()
    second.play()
    assert first.run.status is second.run.status
    if first.run.status is JobStatus.COMPLETED:
        assert {name: (n.status, n.output) for name, n in first.run.nodes.items()} == {
            name: (n.status, n.output) for name, n in second.run.nodes.items()
        }
        assert first.decisions[-1].result == second.decisions[-1].result


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_replays_change_nothing(workflow: Workflow, fate: int, order: int) -> None:
    played = world(workflow, fate=fate, order=order)
    played.play()
    decision = played.decide(list(played.fed))
    assert not decision.steps
    assert not decision.dispatches
    assert not decision.nodes


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_a_successor_finds_the_same_state_in_the_rows(workflow: Workflow, fate: int, order: int) -> None:
    """Take-over at any moment: the state rebuilt from the rows decides exactly as the one in memory."""
    played = world(workflow, fate=fate, order=order, pauses=True)
    played.decide([])
    while played.going():
        rows = played.rows.values()
        restored = RunState.restore(played.graph, "job", {}, played.run.status, rows, paused=played.run.paused)
        assert restored == played.run
        played.decide(played._some_outcomes())


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_a_job_without_failures_completes_and_skips_only_untaken_branches(
    workflow: Workflow, fate: int, order: int
) -> None:
    played = world(workflow, fate=fate, order=order, failure_rate=0)
    played.play()
    assert played.run.status is JobStatus.COMPLETED
    for name, node in played.run.nodes.items():
        dependencies = played.graph.nodes[name].dependencies
        live_edges = [_leads(played, source, name) for source in dependencies]
        expected = NodeStatus.COMPLETED if not dependencies or any(live_edges) else NodeStatus.SKIPPED
        assert node.status is expected


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_a_pause_delays_and_changes_nothing_else(workflow: Workflow, fate: int, order: int) -> None:
    steady = world(workflow, fate=fate, order=order)
    interrupted = world(workflow, fate=fate, order=order, pauses=True)
    steady.play()
    interrupted.play()
    assert interrupted.run.status is steady.run.status
    if steady.run.status is JobStatus.COMPLETED:
        assert interrupted.run.nodes == steady.run.nodes


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_retries_of_the_whole_job_lead_to_the_end_and_keep_what_completed(
    workflow: Workflow, fate: int, order: int
) -> None:
    played = world(workflow, fate=fate, order=order, failure_rate=0.4)
    played.play()
    for _ in range(30):
        if played.run.status is not JobStatus.FAILED:
            break
        completed = {place for place, row in played.rows.items() if row.status is NodeStatus.COMPLETED}
        before = len(played.decisions)
        played.failure_rate /= 2
        played.retry()
        while played.going():
            played.decide(played._some_outcomes())
        again = [s for d in played.decisions[before:] for s in d.steps]
        assert not completed & {(step.node_id, step.item_index) for step in again}
        assert all(row.status in NODE_MACHINE.terminal for row in played.rows.values())
        assert all(node.terminal for node in played.run.nodes.values())
    assert played.run.status is JobStatus.COMPLETED


@thorough
@given(workflows(), SEEDS, SEEDS)
def test_carrying_on_with_a_job_that_is_under_way_changes_nothing(workflow: Workflow, fate: int, order: int) -> None:
    played = world(workflow, fate=fate, order=order)
    played.decide([])
    while played.going():
        evaluation = Evaluation(played.run, NOW, window=played.window)
        evaluation.carry_on()
        assert not evaluation.decision().steps
        played.decide(played._some_outcomes())


@thorough
@given(workflows(), SEEDS, SEEDS, st.integers(0, 6))
def test_cancelling_at_any_moment_ends_everything(workflow: Workflow, fate: int, order: int, rounds: int) -> None:
    played = world(workflow, fate=fate, order=order)
    played.decide([])
    for _ in range(rounds):
        if played.going():
            played.decide(played._some_outcomes())
    already = played.run.status
    evaluation = Evaluation(played.run, NOW)
    evaluation.cancel("told to")
    played.run.apply(evaluation.decision())
    assert all(node.terminal for node in played.run.nodes.values())
    expected = already if already in JOB_MACHINE.terminal else JobStatus.CANCELLED
    assert played.run.status is expected


def _leads(played: World, source: str, target: str) -> bool:
    run, node = played.run.nodes[source], played.graph.nodes[source]
    return run.status is NodeStatus.COMPLETED and (not node.branches or target in run.output["next"])


def _steps(played: World):
    return [step for decision in played.decisions for step in decision.steps]
