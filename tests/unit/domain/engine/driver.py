"""Drives one job through the evaluator by hand: the test says what each attempt reports."""

from __future__ import annotations

from typing import Any

from geomill.domain.engine.aggregate import aggregate
from geomill.domain.engine.decision import Aggregate, Decision, Dispatch, Outcome
from geomill.domain.engine.evaluator import WINDOW, Evaluation, evaluate
from geomill.domain.engine.graph import compile_graph
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.run import RunState
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import FanOutNode, Workflow
from geomill.domain.ids import SINGLE
from tests.unit.domain.engine.simulation import NOW, row, write


def task(following: str | list[str], **more: Any) -> dict[str, Any]:
    return {"handler": "h", "next": following, **more}


def chain(*names: str, **more: Any) -> dict[str, Any]:
    """Tasks one after the other, each given `more`."""
    return {name: task(after, **more) for name, after in zip(names, [*names[1:], "END"], strict=True)}


class JobDriver:
    def __init__(self, nodes: dict[str, Any], inputs: dict[str, Any] | None = None, **workflow: Any) -> None:
        first = workflow.pop("first", next(iter(nodes), "END"))
        self.window = workflow.pop("window", WINDOW)
        nodes = {"START": {"type": "start", "next": first}, **nodes, "END": {"type": "end"}}
        self.graph = compile_graph(
            Workflow.model_validate({"workflow_id": "w", "name": "w", "nodes": nodes, **workflow})
        )
        self.run = RunState.begin(self.graph, "job", inputs or {})
        self.sent: dict[tuple[str, int], Dispatch] = {}
        self.outputs: dict[tuple[str, int], Any] = {}
        self.rows: dict[tuple[str, int], NodeState] = {(name, SINGLE): row(name, SINGLE) for name in self.graph.nodes}
        self.last = self.feed()

    def feed(self, *outcomes: Outcome) -> Decision:
        return self.take(evaluate(self.run, outcomes, NOW, self.answer, window=self.window))

    def take(self, decision: Decision) -> Decision:
        """Apply a decision, as the engine does once it is committed."""
        self.last = decision
        self.sent.update({(d.node_id, d.item_index): d for d in decision.dispatches})
        write(self.rows, decision)
        self.run.apply(decision)
        return decision

    def restored(self, **more: Any) -> Evaluation:
        """Restore the job from its rows, as another orchestrator does when it takes the job over."""
        self.run = RunState.restore(self.graph, "job", self.run.inputs, self.run.status, self.rows.values(), **more)
        return Evaluation(self.run, NOW, window=self.window)

    def done(self, name: str, output: Any = None, *, item: int = SINGLE) -> Outcome:
        self.outputs[name, item] = output
        return self.report(name, TaskReport.COMPLETED, item=item, output=output)

    def failed(self, name: str, error: str = "no luck", *, item: int = SINGLE, **more: Any) -> Outcome:
        return self.report(name, TaskReport.FAILED, item=item, error=error, **more)

    def report(self, name: str, report: TaskReport, *, item: int = SINGLE, **more: Any) -> Outcome:
        return Outcome(name, self.sent[name, item].attempt, report, item, **more)

    def answer(self, fan_in: Aggregate) -> Outcome:
        values: list[Any] = []
        for source in fan_in.sources:
            if isinstance(self.graph.nodes[source].definition, FanOutNode):
                values += [
                    output
                    for (name, index), output in sorted(self.outputs.items())
                    if (name, index >= 0) == (source, True)
                ]
            else:
                values.append(self.outputs.get((source, SINGLE)))
        kind = self.graph.nodes[fan_in.node_id].definition.aggregation
        return Outcome(fan_in.node_id, fan_in.attempt, TaskReport.COMPLETED, output=aggregate(kind, values))

    def statuses(self) -> dict[str, str]:
        return {name: node.status.value for name, node in self.run.nodes.items() if name not in ("START", "END")}

    def output(self, name: str) -> Any:
        return self.run.nodes[name].output

    def params(self, name: str, item: int = SINGLE) -> dict[str, Any]:
        return self.sent[name, item].params


def names(decision: Decision) -> list[str]:
    return [dispatch.node_id for dispatch in decision.dispatches]


def items(decision: Decision) -> list[int]:
    return [dispatch.item_index for dispatch in decision.dispatches]
