"""Random workflows and a world that answers dispatches, for properties of the evaluator."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from geomill.domain.engine.aggregate import aggregate
from geomill.domain.engine.decision import Aggregate, Decision, Dispatch, Outcome
from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.engine.graph import Graph, compile_graph
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.reopening import reopen
from geomill.domain.engine.run import ItemRun, RunState
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import FanOutNode, Workflow
from geomill.domain.ids import SINGLE
from geomill.domain.states import JOB_MACHINE, JobStatus, NodeStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = ("task", "task", "task", "conditional", "fan_out", "fan_in")


@st.composite
def workflows(draw: st.DrawFn, most: int = 9) -> Workflow:
    """A valid graph of tasks, conditionals, fan-outs and fan-ins in which every node is reachable."""
    count = draw(st.integers(1, most))
    names = [f"n{number}" for number in range(count)]
    following: dict[str, list[str]] = {
        name: sorted(draw(st.sets(st.sampled_from([*names[place + 1 :], "END"]), min_size=1, max_size=3)))
        for place, name in enumerate(names)
    }
    reached = {target for targets in following.values() for target in targets}
    first = [name for name in names if name not in reached]
    nodes: dict[str, Any] = {"START": {"type": "start", "next": first}, "END": {"type": "end"}}
    for name in names:
        nodes[name] = draw(_node(following[name]))
    return Workflow.model_validate({"workflow_id": "random", "name": "random", "nodes": nodes})


@st.composite
def _node(draw: st.DrawFn, following: list[str]) -> dict[str, Any]:
    kind = draw(st.sampled_from(KINDS))
    retry = {"max_attempts": draw(st.integers(1, 3)), "initial_delay_seconds": 1}
    if kind == "conditional":
        branches = [{"condition": f"== {number}", "next": [target]} for number, target in enumerate(following[1:])]
        value = draw(st.integers(0, 3))
        return {
            "type": kind,
            "condition_field": value,
            "branches": [*branches, {"default": True, "next": following[0]}],
        }
    if kind == "fan_out":
        node: dict[str, Any] = {"type": kind, "source": list(range(draw(st.integers(0, 7)))), "next": following}
        node["task"] = {"handler": "h", "params": {"value": "{{ item }}", "at": "{{ index }}"}, "retry": retry}
        node["on_failure"] = draw(st.sampled_from(["fail", "continue", {"tolerate": "30%"}, {"tolerate": 1}]))
        node["max_parallel"] = draw(st.sampled_from([None, 1, 3]))
        node["batch_size"] = draw(st.sampled_from([None, 2]))
        return node
    if kind == "fan_in":
        return {"type": kind, "aggregation": draw(st.sampled_from(["collect", "count", "sum"])), "next": following}
    on_failure = draw(st.sampled_from(["fail", "fail", "continue"]))
    return {"type": "task", "handler": "h", "params": {}, "retry": retry, "on_failure": on_failure, "next": following}


@dataclass
class World:
    """Runs one job to its end. What happens to an attempt depends on the seed and the attempt, not on the order."""

    graph: Graph
    fate: int
    order: random.Random
    failure_rate: float = 0.15
    window: int = 4
    run: RunState = field(init=False)
    pending: list[Dispatch] = field(default_factory=list)
    rows: dict[tuple[str, int], NodeState] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    fed: list[Outcome] = field(default_factory=list)
    pauses: bool = False

    def __post_init__(self) -> None:
        self.run = RunState.begin(self.graph, "job", {})
        self.rows = {(name, SINGLE): row(name, SINGLE) for name in self.graph.nodes}

    def play(self) -> None:
        self.decide([])
        while self.going():
            self.decide(self._some_outcomes())

    def going(self) -> bool:
        return self.run.status not in JOB_MACHINE.terminal and bool(self.pending or self.run.paused)

    def decide(self, outcomes: list[Outcome]) -> Decision:
        evaluation = Evaluation(self.run, NOW, window=self.window)
        if not self.decisions:
            evaluation.begin()
        evaluation.feed(outcomes)
        self.fed += outcomes
        return self._commit(evaluation)

    def _commit(self, evaluation: Evaluation) -> Decision:
        while waiting := evaluation.take_aggregates():
            evaluation.feed([self._answer(fan_in, evaluation.decision()) for fan_in in waiting])
        decision = evaluation.decision()
        self.pending += decision.dispatches
        write(self.rows, decision)
        self.run.apply(decision)
        self.decisions.append(decision)
        return decision

    def _some_outcomes(self) -> list[Outcome]:
        self.order.shuffle(self.pending)
        dispatches = [
            self.pending.pop() for _ in range(self.order.randint(1, len(self.pending)) if self.pending else 0)
        ]
        outcomes = [self._end(dispatch) for dispatch in dispatches]
        courtesy = [Outcome(d.node_id, d.attempt, TaskReport.RUNNING, d.item_index) for d in dispatches + self.pending]
        outcomes += self.order.sample(courtesy, self.order.randint(0, len(courtesy)))
        outcomes += self.order.sample(self.fed, min(len(self.fed), self.order.randint(0, 2)))
        self.order.shuffle(outcomes)
        if self.pauses and (self.run.paused or self.order.random() < 0.3):
            outcomes.append(Outcome("", 0, TaskReport.RESUME if self.run.paused else TaskReport.PAUSE))
        return outcomes

    def _end(self, dispatch: Dispatch) -> Outcome:
        key = f"{self.fate}/{dispatch.node_id}/{dispatch.item_index}/{dispatch.attempt}"
        chance = zlib.crc32(key.encode()) / 0xFFFFFFFF
        here = (dispatch.node_id, dispatch.attempt)
        if chance < self.failure_rate:
            retryable = chance > self.failure_rate / 4
            return Outcome(*here, TaskReport.FAILED, dispatch.item_index, error="bad luck", retryable=retryable)
        if chance > 0.97 and dispatch.attempt < 5:
            return Outcome(*here, TaskReport.ABANDONED, dispatch.item_index)
        return Outcome(*here, TaskReport.COMPLETED, dispatch.item_index, output={"n": dispatch.item_index})

    def _answer(self, fan_in: Aggregate, decision: Decision) -> Outcome:
        values: list[Any] = []
        for source in fan_in.sources:
            if isinstance(self.graph.nodes[source].definition, FanOutNode):
                values += [{"n": index} for index in sorted(self._completed(source, decision))]
            else:
                values.append(source)
        kind = self.graph.nodes[fan_in.node_id].definition.aggregation
        return Outcome(fan_in.node_id, fan_in.attempt, TaskReport.COMPLETED, output=aggregate(kind, values))

    def _completed(self, source: str, decision: Decision) -> set[int]:
        before = {index for (name, index), state in self.rows.items() if name == source and _completed(state)}
        change = decision.fan_outs.get(source)
        fresh = {index for index, item in change.changed.items() if _completed(item)} if change else set()
        return (before | fresh) - {SINGLE}

    def retry(self) -> None:
        """Retry a job that ended badly, as an operator does; a successor continues it."""
        for again in reopen(self.graph, self.rows.values()):
            put(self.rows, row(again.node_id, again.item_index, again.status, again.attempt))
        self.run = RunState.restore(self.graph, "job", {}, JobStatus.RUNNING, self.rows.values())
        self.pending.clear()
        evaluation = Evaluation(self.run, NOW, window=self.window)
        evaluation.carry_on()
        self._commit(evaluation)


Rows = dict[tuple[str, int], NodeState]


def write(rows: Rows, decision: Decision) -> None:
    """Write the changed rows from the decision alone, as the store does."""
    for name, run in decision.nodes.items():
        put(rows, row(name, SINGLE, run.status, run.attempt, run.failures, run.output, run.error or None))
    for name, change in decision.fan_outs.items():
        put(rows, rows[name, SINGLE].model_copy(update={"items_sent": change.next_index}))
        for index, item in change.changed.items():
            assert item.stored == ((name, index) in rows)
            if not item.only_sent:
                put(rows, row(name, index, item.status, item.attempt, item.failures))


def put(rows: Rows, written: NodeState) -> None:
    place = (written.node_id, written.item_index)
    before = rows[place].items_sent if place in rows else None
    rows[place] = written if written.items_sent else written.model_copy(update={"items_sent": before})


def _completed(state: NodeState | ItemRun) -> bool:
    return state.status is NodeStatus.COMPLETED


def row(
    name: str,
    index: int,
    status: NodeStatus = NodeStatus.PENDING,
    attempt: int = 0,
    failures: int = 0,
    output: Any = None,
    error: str | None = None,
) -> NodeState:
    return NodeState(
        job_id="job",
        node_id=name,
        item_index=index,
        status=status,
        attempt=attempt,
        retry_count=failures,
        output=output,
        error_message=error,
        created_at=NOW,
        updated_at=NOW,
    )


def world(workflow: Workflow, *, fate: int, order: int, failure_rate: float = 0.15, pauses: bool = False) -> World:
    return World(compile_graph(workflow), fate, random.Random(order), failure_rate, pauses=pauses)
