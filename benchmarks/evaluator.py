"""How fast the evaluator decides, and how its cost grows with the graph and with a fan-out."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from benchmarks.figures import Figure, in_child, peak_megabytes
from geomill.domain.engine.decision import Aggregate, Outcome
from geomill.domain.engine.evaluator import evaluate
from geomill.domain.engine.graph import compile_graph
from geomill.domain.engine.run import RunState
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import Workflow
from geomill.domain.states import JobStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 200


def run() -> list[Figure]:
    figures: list[Figure] = []
    for nodes in (10, 1_000, 100_000):
        figures += in_child("benchmarks.evaluator", "chain", nodes=nodes)
    for items in (1_000, 10_000, 100_000):
        figures += in_child("benchmarks.evaluator", "fan_out", items=items)
    return figures


def chain(nodes: int) -> list[Figure]:
    """One task after the other: every result is a decision of its own."""
    steps: dict[str, Any] = {"START": {"type": "start", "next": "n0"}, "END": {"type": "end"}}
    for number in range(nodes):
        following = f"n{number + 1}" if number < nodes - 1 else "END"
        steps[f"n{number}"] = {"handler": "h", "params": {"x": "{{ inputs.x }}"}, "next": following}
    state = _begin({"inputs": {"x": {"type": "integer"}}, "nodes": steps}, {"x": 1})
    begun = time.perf_counter()
    decision = evaluate(state, [], NOW, _answer)
    state.apply(decision)
    while decision.dispatches:
        done = decision.dispatches[0]
        outcome = Outcome(done.node_id, done.attempt, TaskReport.COMPLETED, output={"y": 1})
        decision = evaluate(state, [outcome], NOW, _answer)
        state.apply(decision)
    seconds = time.perf_counter() - begun
    assert state.status is JobStatus.COMPLETED
    return [
        Figure(f"chain of {nodes:,}: nodes decided, one at a time", nodes / seconds, "nodes/s"),
        Figure(f"chain of {nodes:,}: peak memory", peak_megabytes(), "MB"),
    ]


def fan_out(items: int) -> list[Figure]:
    nodes = {
        "START": {"type": "start", "next": "each"},
        "each": {
            "type": "fan_out",
            "source": "{{ inputs.x }}",
            "task": {"handler": "h", "params": {"value": "{{ item }}", "at": "{{ index }}"}},
            "next": "all",
        },
        "all": {"type": "fan_in", "aggregation": "count", "next": "END"},
        "END": {"type": "end"},
    }
    source = [{"number": number} for number in range(items)]
    state = _begin({"inputs": {"x": {"type": "array"}}, "nodes": nodes}, {"x": source})
    begun = time.perf_counter()
    decision = evaluate(state, [], NOW, _answer)
    state.apply(decision)
    waiting = decision.dispatches
    while waiting:
        batch, waiting = waiting[:BATCH], waiting[BATCH:]
        outcomes = [Outcome(d.node_id, d.attempt, TaskReport.COMPLETED, d.item_index, output={"y": 1}) for d in batch]
        decision = evaluate(state, outcomes, NOW, _answer)
        state.apply(decision)
        waiting += decision.dispatches
    seconds = time.perf_counter() - begun
    assert state.status is JobStatus.COMPLETED
    return [
        Figure(f"fan-out of {items:,}: items decided, in batches of {BATCH}", items / seconds, "items/s"),
        Figure(f"fan-out of {items:,}: peak memory", peak_megabytes(), "MB"),
    ]


def _begin(body: dict[str, Any], inputs: dict[str, Any]) -> RunState:
    workflow = Workflow.model_validate({"workflow_id": "bench", "name": "bench", **body})
    return RunState.begin(compile_graph(workflow), "job", inputs)


def _answer(fan_in: Aggregate) -> Outcome:
    return Outcome(fan_in.node_id, fan_in.attempt, TaskReport.COMPLETED, output={"count": 0})
