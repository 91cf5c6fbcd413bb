"""The evaluator: from a job's state and a batch of outcomes to a decision. No input, no output, no clock.

    evaluation = Evaluation(run, now)          an overlay on the state; the state itself stays unchanged
    evaluation.begin()                         once per job: runs the start node
    evaluation.feed(outcomes)                  as results arrive
    evaluation.decision()                      what to write; after the commit, run.apply(decision)

How it works. Each node counts its dependencies that are not terminal yet. When a node ends, its successors count down.
At zero a successor runs if any edge led to it, and is skipped otherwise. This repeats until nothing changes. The cost
of a step is therefore proportional to the change: a step of a chain touches two nodes, whatever the size of the graph,
and a result of a fan-out touches one counter.

    completed ──► each successor: waiting -= 1, live |= edge taken ──► waiting == 0?
                                                                          live: activate    not live: skip ──► …
    activate    start, end       complete
                conditional      choose a branch, complete
                task             render the parameters, dispatch
                fan_out          render the list, dispatch a window of items; refill as items end
                fan_in           ask for the outputs (`Aggregate`); its outcome comes back through feed()

An outcome counts only if it has the number of the attempt that is under way. All others, including replays, are stale.
The first failure that is not tolerated decides the verdict: nodes that have not begun are skipped, running ones are
cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from geomill.domain.engine.decision import Aggregate, Cancel, Decision, Dispatch, Outcome
from geomill.domain.engine.fan_outs import SLICES, WINDOW, FanOuts
from geomill.domain.engine.graph import GraphNode
from geomill.domain.engine.overlay import Overlay
from geomill.domain.engine.run import NodeRun, RunState, leads_to, may_continue
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import ConditionalNode, EndNode, FanInNode, FanOutNode, StartNode, TaskNode
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus, NodeStatus
from geomill.errors import ExpressionError

_N, _J = NodeStatus, JobStatus
_COMMANDS = frozenset({TaskReport.CANCEL, TaskReport.PAUSE, TaskReport.RESUME})


Answer = Callable[[Aggregate], Outcome]


def evaluate(
    run: RunState, outcomes: Iterable[Outcome], now: datetime, answer: Answer, *, window: int = WINDOW
) -> Decision:
    """Return the decision that follows from these outcomes. `answer` computes the aggregate of a fan-in. A new job is
    begun first."""
    evaluation = Evaluation(run, now, window=window, slices=(window, window))
    if run.nodes[run.graph.start].status is _N.PENDING:
        evaluation.begin()
    evaluation.feed(outcomes)
    while waiting := evaluation.take_aggregates():
        evaluation.feed([answer(aggregate) for aggregate in waiting])
    return evaluation.decision()


class Evaluation:
    def __init__(self, run: RunState, now: datetime, *, window: int = WINDOW, slices: tuple[int, int] = SLICES) -> None:
        self._overlay = Overlay(run, now)
        self._graph = run.graph
        self._decision = self._overlay.decision
        self._fan_outs = FanOuts(self._overlay, self._fail_node, window=window, slices=slices)

    def begin(self) -> None:
        self._activate(self._graph.start)
        self._settle()

    def feed(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if self._overlay.ended:
                self._decision.stale.append(outcome)
            elif outcome.report in _COMMANDS:
                self._command(outcome)
                self._settle()
            elif outcome.node_id not in self._graph.nodes:
                self._decision.stale.append(outcome)
            elif outcome.item_index == SINGLE:
                self._take_node(outcome)
                self._settle()
            else:
                self._fan_outs.take(outcome)
        self._go_on()

    def send_more(self) -> None:
        """Send the next slice of each fan-out that has room. One decision sends only one slice."""
        self._fan_outs.look_at_all()
        self._go_on()

    def _go_on(self) -> None:
        """Advance the fan-outs in which items have ended: once for all these items, not once for each."""
        while node := self._fan_outs.next_advanced():
            self._fan_outs.go_on(node)
            self._settle()

    def carry_on(self) -> None:
        """Start every node that could run but does not, after a takeover, a pause or a retry.

        It changes nothing in a job that is under way. Unlike the other methods it visits the whole graph.
        """
        if self._overlay.ended or self._overlay.paused:
            return
        for node_id in self._graph.nodes:
            run = self._overlay.node(node_id)
            if run.status is _N.PENDING and run.waiting == 0:
                if run.live or node_id == self._graph.start:
                    self._activate(node_id)
                else:
                    self._overlay.skip(node_id)
            elif run.status is _N.READY:
                self._set_going(self._graph.nodes[node_id])
            elif run.status is _N.RUNNING and isinstance(self._graph.nodes[node_id].definition, FanOutNode):
                self._fan_outs.set_going(self._graph.nodes[node_id])
            self._settle()

    def _set_going(self, node: GraphNode) -> None:
        if isinstance(node.definition, FanInNode):
            self._ask(node.node_id)
        elif isinstance(node.definition, TaskNode):
            self._dispatch_node(node)

    def _command(self, command: Outcome) -> None:
        match command.report:
            case TaskReport.CANCEL:
                self.cancel(command.error or "cancelled")
            case TaskReport.PAUSE:
                self._decision.paused = True
            case _:
                self._decision.paused = False
                self.carry_on()

    def cancel(self, reason: str) -> None:
        if not self._overlay.ended:
            self._close(_J.CANCELLED, reason)

    def fail(self, reason: str) -> None:
        """Fail the job from outside, because its deadline has passed."""
        if not self._overlay.ended:
            self._close(_J.FAILED, reason)

    def decision(self) -> Decision:
        return self._decision

    def take_aggregates(self) -> list[Aggregate]:
        """Return the fan-ins that wait, and forget them. The caller feeds their outcomes."""
        aggregates, self._decision.aggregates = self._decision.aggregates, []
        return aggregates

    # Nodes

    def _take_node(self, outcome: Outcome) -> None:
        run = self._overlay.node(outcome.node_id)
        graph_node = self._graph.nodes[outcome.node_id]
        awaits_aggregate = run.status is _N.READY and isinstance(graph_node.definition, FanInNode)
        under_way = run.status in (_N.DISPATCHED, _N.RUNNING) and isinstance(graph_node.definition, TaskNode)
        if outcome.attempt != run.attempt or not (awaits_aggregate or under_way):
            self._decision.stale.append(outcome)
        elif outcome.report is TaskReport.COMPLETED:
            self._overlay.complete(outcome.node_id, outcome.output)
        elif outcome.report is TaskReport.RUNNING:
            if run.status is _N.DISPATCHED:
                self._overlay.move(outcome.node_id, _N.RUNNING)
        elif awaits_aggregate:
            self._fail_node(outcome.node_id, outcome.error)
        else:
            self._retry_or_fail_node(graph_node, run, outcome)

    def _retry_or_fail_node(self, node: GraphNode, run: NodeRun, outcome: Outcome) -> None:
        assert node.execution is not None
        attempt = self._overlay.next_attempt(node.execution, run.attempt, run.failures, outcome)
        if attempt is None:
            self._fail_node(node.node_id, outcome.error, failures=run.failures + 1)
            return
        self._overlay.move(
            node.node_id,
            _N.FAILED,
            _N.READY,
            detail=outcome.error,
            attempt=attempt.number,
            failures=attempt.failures,
        )
        self._dispatch_node(node, not_before=self._overlay.not_before(node, SINGLE, attempt))

    def _activate(self, node_id: str) -> None:
        node = self._graph.nodes[node_id]
        self._overlay.move(node_id, _N.READY, attempt=max(self._overlay.node(node_id).attempt, 1))
        try:
            match node.definition:
                case StartNode() | EndNode():
                    self._overlay.complete(node_id, None)
                case ConditionalNode():
                    self._overlay.complete(node_id, self._choose(node))
                case TaskNode():
                    self._dispatch_node(node)
                case FanOutNode():
                    self._fan_outs.expand(node)
                case FanInNode():
                    self._ask(node_id)
        except ExpressionError as error:
            self._fail_node(node_id, str(error))

    def _choose(self, node: GraphNode) -> dict[str, Any]:
        assert node.value is not None
        value = node.value.render(self._overlay.scope)
        for number, branch in enumerate(node.branches):
            if branch.condition is None or branch.condition.holds(value):
                name = branch.condition.source if branch.condition else "default"
                return {"value": value, "branch": name, "number": number, "next": sorted(branch.targets)}
        raise ExpressionError(f"no branch of {node.node_id} fits the value {value!r}")

    def _dispatch_node(self, node: GraphNode, not_before: datetime | None = None) -> None:
        assert node.execution is not None
        if self._overlay.paused:
            return
        try:
            params = node.execution.params.render(self._overlay.scope)
        except ExpressionError as error:
            self._fail_node(node.node_id, str(error))
            return
        run = self._overlay.node(node.node_id)
        self._overlay.move(node.node_id, _N.DISPATCHED)
        self._overlay.job(_J.RUNNING)
        self._decision.dispatches.append(
            Dispatch(node.node_id, SINGLE, run.attempt, run.failures, params, node.execution, not_before)
        )

    def _ask(self, node_id: str) -> None:
        node = self._graph.nodes[node_id]
        sources = tuple(
            source
            for source in node.dependencies
            if self._overlay.node(source).status is _N.COMPLETED
            and leads_to(self._graph.nodes[source], self._overlay.node(source), node_id)
        )
        self._decision.aggregates.append(Aggregate(node_id, self._overlay.node(node_id).attempt, sources))

    def _fail_node(self, node_id: str, error: str, **changes: Any) -> None:
        self._overlay.move(node_id, _N.FAILED, detail=error, error=error, **changes)
        if may_continue(self._graph.nodes[node_id]):
            self._overlay.settled.append(node_id)
        else:
            self._close(_J.FAILED, f"node '{node_id}' failed: {error}", failed_node=node_id)

    # Propagation and verdict

    def _settle(self) -> None:
        while self._overlay.settled and not self._overlay.ended:
            node_id = self._overlay.settled.popleft()
            node, run = self._graph.nodes[node_id], self._overlay.node(node_id)
            for target in node.successors:
                self._count_down(target, leads_to(node, run, target))
        self._finish_if_done()

    def _count_down(self, node_id: str, led_here: bool) -> None:
        run = self._overlay.node(node_id)
        if run.terminal:
            return
        run = replace(run, waiting=run.waiting - 1, live=run.live or led_here)
        self._decision.nodes[node_id] = run
        if run.waiting == 0:
            if run.live:
                self._activate(node_id)
            else:
                self._overlay.skip(node_id)

    def _finish_if_done(self) -> None:
        if self._overlay.ended or self._decision.closed < self._overlay.run.open_nodes:
            return
        try:
            self._decision.result = self._result()
        except ExpressionError as error:
            self._decision.error = f"the outputs cannot be evaluated: {error}"
            self._overlay.job(_J.FAILED)
        else:
            self._overlay.job(_J.COMPLETED)

    def _result(self) -> dict[str, Any]:
        if self._graph.outputs is not None:
            return dict(self._graph.outputs.render(self._overlay.scope))
        nodes = {node_id: self._overlay.node(node_id) for node_id in self._graph.result_nodes()}
        return {
            node_id: run.output
            for node_id, run in nodes.items()
            if run.status is _N.COMPLETED and run.output is not None
        }

    def _close(self, verdict: JobStatus, reason: str, failed_node: str = "") -> None:
        """End the job now: skip nodes that have not begun, cancel those under way."""
        self._overlay.settled.clear()
        for node_id in self._graph.nodes:
            run = self._overlay.node(node_id)
            if run.status in (_N.PENDING, _N.READY):
                self._overlay.move(node_id, _N.SKIPPED)
            elif run.status in (_N.DISPATCHED, _N.RUNNING):
                self._cancel_node(node_id, run)
            self._fan_outs.cancel(node_id)
        self._decision.aggregates.clear()
        self._decision.dispatches.clear()
        self._decision.error = reason
        self._decision.failed_node = failed_node
        self._overlay.job(verdict)

    def _cancel_node(self, node_id: str, run: NodeRun) -> None:
        if isinstance(self._graph.nodes[node_id].definition, TaskNode):
            self._decision.cancels.append(Cancel(node_id, SINGLE, run.attempt))
        self._overlay.move(node_id, _N.CANCELLED)
