"""The evaluator: from a job's state and a batch of outcomes to what happens next. No input, no output, no clock.

    evaluation = Evaluation(run, now)          an overlay on the state; the state itself stays as it is
    evaluation.begin()                         once per job: runs the start node
    evaluation.feed(outcomes)                  as results arrive
    evaluation.decision()                      what to write; after the commit, run.apply(decision)

How it works. A node knows how many of its dependencies are not terminal yet. When one ends, its successors count
down; at zero a successor runs if any edge led to it and is skipped otherwise, and so on until nothing moves. So a
step costs what it changed: a chain step touches two nodes, whatever the size of the graph, and one result of a
fan-out touches a counter.

    completed ──► each successor: waiting -= 1, live |= edge taken ──► waiting == 0?
                                                                          live: activate    not live: skip ──► …
    activate    start, end       complete
                conditional      choose a branch, complete
                task             render the parameters, dispatch
                fan_out          render the list, dispatch a window of items; refill as items end
                fan_in           ask for the outputs (`Aggregate`); its outcome comes back through feed()

An outcome counts only if it carries the attempt that is under way; everything else is stale, and so are replays.
The first failure that nobody tolerates decides the verdict: what has not begun is skipped, what runs is cancelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from geomill.domain.decision import QUIET, Aggregate, Cancel, Decision, Dispatch, FanOutChange, Outcome, Step
from geomill.domain.graph import Execution, GraphNode
from geomill.domain.ids import SINGLE, task_id
from geomill.domain.run import ItemRun, NodeRun, RunState, fan_out_items, leads_to, may_continue, scope_of
from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, JobStatus, NodeStatus
from geomill.domain.task import Report
from geomill.domain.workflow import ConditionalNode, EndNode, FanInNode, FanOutNode, StartNode, TaskNode, Tolerate
from geomill.errors import ExpressionError

WINDOW = 5_000
"""Items of a fan-out without `max_parallel` that are under way at once: the first starts before the last is sent."""

SLICES = (100, 500)
"""Items of one fan-out that its first decision sends, and that a later one sends at most: the workers begin while the
next slice is written."""

_N, _J = NodeStatus, JobStatus
_COMMANDS = frozenset({Report.CANCEL, Report.PAUSE, Report.RESUME})


Answer = Callable[[Aggregate], Outcome]


def evaluate(
    run: RunState, outcomes: Iterable[Outcome], now: datetime, answer: Answer, *, window: int = WINDOW
) -> Decision:
    """Everything that follows from these outcomes, where fan_in outputs are at hand. A new job is begun first."""
    evaluation = Evaluation(run, now, window=window, slices=(window, window))
    if run.nodes[run.graph.start].status is _N.PENDING:
        evaluation.begin()
    evaluation.feed(outcomes)
    while waiting := evaluation.take_aggregates():
        evaluation.feed([answer(aggregate) for aggregate in waiting])
    return evaluation.decision()


class Evaluation:
    def __init__(self, run: RunState, now: datetime, *, window: int = WINDOW, slices: tuple[int, int] = SLICES) -> None:
        self._run = run
        self._graph = run.graph
        self._now = now
        self._window = window
        self._slices = slices
        self._decision = Decision(status=run.status)
        self._settled: deque[str] = deque()
        self._advanced: dict[str, None] = {}
        self._scope = scope_of(run, self._node)

    def begin(self) -> None:
        self._activate(self._graph.start)
        self._settle()

    def feed(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if self._decision.status in JOB_MACHINE.terminal:
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
                self._take_item(outcome)
        self._go_on()

    def send_more(self) -> None:
        """The next slice of each fan-out that has room: the decision before sent all that it may send at once."""
        self._advanced.update(dict.fromkeys(self._run.fan_outs))
        self._go_on()

    def _go_on(self) -> None:
        """With fan-outs of which items have ended: once for all of them, not for each."""
        while self._advanced:
            node_id, _ = self._advanced.popitem()
            if self._decision.status not in JOB_MACHINE.terminal and not self._node(node_id).terminal:
                self._after_items(self._graph.nodes[node_id])
                self._settle()

    def carry_on(self) -> None:
        """Set going whatever stands still although nothing holds it: after a take-over, a pause or a retry.

        On a job that is under way it changes nothing. Unlike everything else here it looks at the whole graph.
        """
        if self._decision.status in JOB_MACHINE.terminal or self._paused:
            return
        for node_id in self._graph.nodes:
            run = self._node(node_id)
            if run.status is _N.PENDING and run.waiting == 0:
                if run.live or node_id == self._graph.start:
                    self._activate(node_id)
                else:
                    self._skip(node_id)
            elif run.status is _N.READY:
                self._set_going(self._graph.nodes[node_id])
            elif run.status is _N.RUNNING and isinstance(self._graph.nodes[node_id].definition, FanOutNode):
                self._set_items_going(self._graph.nodes[node_id])
            self._settle()

    def _set_going(self, node: GraphNode) -> None:
        if isinstance(node.definition, FanInNode):
            self._ask(node.node_id)
        elif isinstance(node.definition, TaskNode):
            self._dispatch_node(node)

    def _set_items_going(self, node: GraphNode) -> None:
        for index, item in self._items(node.node_id).items():
            if item.status is _N.PENDING:
                self._record(node.node_id, index, item.status, (_N.READY,))
                item = replace(item, status=_N.READY)
            if item.status is _N.READY:
                self._change(node.node_id).changed[index] = item
                if not self._dispatch_item(node, index):
                    return
        self._after_items(node)

    def _command(self, command: Outcome) -> None:
        match command.report:
            case Report.CANCEL:
                self.cancel(command.error or "cancelled")
            case Report.PAUSE:
                self._decision.paused = True
            case _:
                self._decision.paused = False
                self.carry_on()

    @property
    def _paused(self) -> bool:
        return self._run.paused if self._decision.paused is None else self._decision.paused

    def cancel(self, reason: str) -> None:
        if self._decision.status not in JOB_MACHINE.terminal:
            self._close(_J.CANCELLED, reason)

    def fail(self, reason: str) -> None:
        """End the job from outside: its deadline passed."""
        if self._decision.status not in JOB_MACHINE.terminal:
            self._close(_J.FAILED, reason)

    def decision(self) -> Decision:
        return self._decision

    def take_aggregates(self) -> list[Aggregate]:
        """The fan_in nodes that wait; whoever takes them feeds the outcomes."""
        taken, self._decision.aggregates = self._decision.aggregates, []
        return taken

    # The overlay

    def _node(self, node_id: str) -> NodeRun:
        return self._decision.nodes.get(node_id) or self._run.nodes[node_id]

    def _move(self, node_id: str, *path: NodeStatus, detail: str = "", **changes: Any) -> None:
        run = self._node(node_id)
        self._record(node_id, SINGLE, run.status, path, detail)
        self._decision.nodes[node_id] = replace(run, status=path[-1], **changes)
        if path[-1] in NODE_MACHINE.terminal:
            self._decision.closed += 1

    def _record(
        self, node_id: str, item_index: int, source: NodeStatus, path: Sequence[NodeStatus], detail: str = ""
    ) -> None:
        for target in path:
            NODE_MACHINE.check(source, target)
            if item_index != SINGLE and target in QUIET and source is not _N.FAILED:
                self._decision.quiet_steps += 1
            else:
                self._decision.steps.append(Step(node_id, item_index, source, target, detail))
            source = target

    def _job(self, target: JobStatus) -> None:
        if self._decision.status is not target:
            JOB_MACHINE.check(self._decision.status, target)
            self._decision.status = target

    # Nodes

    def _take_node(self, outcome: Outcome) -> None:
        run = self._node(outcome.node_id)
        graph_node = self._graph.nodes[outcome.node_id]
        asked = run.status is _N.READY and isinstance(graph_node.definition, FanInNode)
        under_way = run.status in (_N.DISPATCHED, _N.RUNNING) and isinstance(graph_node.definition, TaskNode)
        if outcome.attempt != run.attempt or not (asked or under_way):
            self._decision.stale.append(outcome)
        elif outcome.report is Report.COMPLETED:
            self._complete(outcome.node_id, outcome.output)
        elif outcome.report is Report.RUNNING:
            if run.status is _N.DISPATCHED:
                self._move(outcome.node_id, _N.RUNNING)
        elif asked:
            self._fail_node(outcome.node_id, outcome.error)
        else:
            self._retry_or_fail_node(graph_node, run, outcome)

    def _retry_or_fail_node(self, node: GraphNode, run: NodeRun, outcome: Outcome) -> None:
        assert node.execution is not None
        attempt = self._next_attempt(node.execution, run.attempt, run.failures, outcome)
        if attempt is None:
            self._fail_node(node.node_id, outcome.error, failures=run.failures + 1)
            return
        self._move(
            node.node_id,
            _N.FAILED,
            _N.READY,
            detail=outcome.error,
            attempt=attempt.number,
            failures=attempt.failures,
        )
        self._dispatch_node(node, not_before=self._not_before(node, SINGLE, attempt))

    def _next_attempt(self, execution: Execution, number: int, failures: int, outcome: Outcome) -> _Attempt | None:
        if outcome.report is Report.ABANDONED:
            return _Attempt(number + 1, failures, delayed=False)
        self._decision.retries += 1
        failures += 1
        budget = self._graph.workflow.retry_budget
        if budget is not None and self._run.retries + self._decision.retries > budget:
            return None
        if execution.retry.allows(failures=failures, error_code=outcome.error_code, retryable=outcome.retryable):
            return _Attempt(number + 1, failures, delayed=True)
        return None

    def _not_before(self, node: GraphNode, item_index: int, attempt: _Attempt) -> datetime | None:
        if not attempt.delayed:
            return None
        assert node.execution is not None
        seed = task_id(self._run.job_id, node.node_id, item_index, attempt.number)
        return node.execution.retry.not_before(self._now, failures=attempt.failures, seed=seed)

    def _activate(self, node_id: str) -> None:
        node = self._graph.nodes[node_id]
        self._move(node_id, _N.READY, attempt=max(self._node(node_id).attempt, 1))
        try:
            match node.definition:
                case StartNode() | EndNode():
                    self._complete(node_id, None)
                case ConditionalNode():
                    self._complete(node_id, self._choose(node))
                case TaskNode():
                    self._dispatch_node(node)
                case FanOutNode():
                    self._expand(node)
                case FanInNode():
                    self._ask(node_id)
        except ExpressionError as error:
            self._fail_node(node_id, str(error))

    def _choose(self, node: GraphNode) -> dict[str, Any]:
        assert node.value is not None
        value = node.value.render(self._scope)
        for number, branch in enumerate(node.branches):
            if branch.condition is None or branch.condition.holds(value):
                name = branch.condition.source if branch.condition else "default"
                return {"value": value, "branch": name, "number": number, "next": sorted(branch.targets)}
        raise ExpressionError(f"no branch of {node.node_id} fits the value {value!r}")

    def _dispatch_node(self, node: GraphNode, not_before: datetime | None = None) -> None:
        assert node.execution is not None
        if self._paused:
            return
        try:
            params = node.execution.params.render(self._scope)
        except ExpressionError as error:
            self._fail_node(node.node_id, str(error))
            return
        run = self._node(node.node_id)
        self._move(node.node_id, _N.DISPATCHED)
        self._job(_J.RUNNING)
        self._decision.dispatches.append(
            Dispatch(node.node_id, SINGLE, run.attempt, run.failures, params, node.execution, not_before)
        )

    def _ask(self, node_id: str) -> None:
        node = self._graph.nodes[node_id]
        sources = tuple(
            source
            for source in node.dependencies
            if self._node(source).status is _N.COMPLETED
            and leads_to(self._graph.nodes[source], self._node(source), node_id)
        )
        self._decision.aggregates.append(Aggregate(node_id, self._node(node_id).attempt, sources))

    def _complete(self, node_id: str, output: Any) -> None:
        self._move(node_id, _N.COMPLETED, output=output)
        self._settled.append(node_id)

    def _skip(self, node_id: str) -> None:
        self._move(node_id, _N.SKIPPED)
        self._settled.append(node_id)

    def _fail_node(self, node_id: str, error: str, **changes: Any) -> None:
        self._move(node_id, _N.FAILED, detail=error, error=error, **changes)
        if may_continue(self._graph.nodes[node_id]):
            self._settled.append(node_id)
        else:
            self._close(_J.FAILED, f"node '{node_id}' failed: {error}", failed_node=node_id)

    # Fan-outs

    def _change(self, node_id: str) -> FanOutChange:
        change = self._decision.fan_outs.get(node_id)
        if change is None:
            fan_out = self._run.fan_outs[node_id]
            change = self._decision.fan_outs[node_id] = FanOutChange(fan_out.items, fan_out.next_index)
        return change

    def _expand(self, node: GraphNode) -> None:
        items = fan_out_items(node, self._scope)
        if not items:
            self._complete(node.node_id, {"total": 0, "completed": 0, "failed": 0})
            return
        self._move(node.node_id, _N.DISPATCHED, _N.RUNNING, detail=f"{len(items)} items")
        self._job(_J.RUNNING)
        self._decision.fan_outs[node.node_id] = FanOutChange(items, 0)
        self._after_items(node)

    def _in_flight(self, node_id: str) -> int:
        before = self._run.fan_outs.get(node_id)
        change = self._change(node_id)
        dispatched = change.next_index - (before.next_index if before else 0)
        return (len(before.in_flight) if before else 0) + dispatched - change.ended

    def _refill(self, node: GraphNode) -> None:
        """Send more items once there is room: at once under `max_parallel`, below half of the window otherwise."""
        assert isinstance(node.definition, FanOutNode)
        change = self._change(node.node_id)
        if self._paused or change.next_index == len(change.items):
            return
        limit = node.definition.max_parallel or self._window
        in_flight = self._in_flight(node.node_id)
        if node.definition.max_parallel is None and in_flight > limit // 2:
            return
        room = min(limit - in_flight, len(change.items) - change.next_index)
        allowed = self._slice(node.node_id)
        self._decision.more = self._decision.more or room > allowed
        for _ in range(min(room, allowed)):
            index = change.next_index
            change.next_index += 1
            self._record(node.node_id, index, _N.PENDING, (_N.READY,))
            change.changed[index] = ItemRun(_N.READY)
            if not self._dispatch_item(node, index):
                return

    def _slice(self, node_id: str) -> int:
        """How many more items this decision may send: twice as many as all before it, within bounds."""
        first, most = self._slices
        before = self._run.fan_outs.get(node_id)
        sent = before.next_index if before else 0
        return min(max(2 * sent, first), most) - (self._change(node_id).next_index - sent)

    def _dispatch_item(self, node: GraphNode, index: int, not_before: datetime | None = None) -> bool:
        """Whether the fan-out is still under way afterwards: a template that fails may end it."""
        assert node.execution is not None
        if self._paused:
            return True
        change = self._change(node.node_id)
        item = change.changed[index]
        try:
            params = node.execution.params.render({**self._scope, "item": change.items[index], "index": index})
        except ExpressionError as error:
            return self._end_item(node, index, item, _N.FAILED, str(error))
        self._record(node.node_id, index, _N.READY, (_N.DISPATCHED,))
        change.changed[index] = ItemRun(_N.DISPATCHED, item.attempt, item.failures, "", self._now, item.stored)
        self._decision.dispatches.append(
            Dispatch(node.node_id, index, item.attempt, item.failures, params, node.execution, not_before)
        )
        return True

    def _item(self, node_id: str, index: int) -> ItemRun | None:
        change = self._decision.fan_outs.get(node_id)
        if change and index in change.changed:
            return change.changed[index]
        fan_out = self._run.fan_outs.get(node_id)
        return fan_out.in_flight.get(index) if fan_out else None

    def _items(self, node_id: str) -> dict[int, ItemRun]:
        """The items of a fan-out that have begun and not ended."""
        before, change = self._run.fan_outs.get(node_id), self._decision.fan_outs.get(node_id)
        found = {**(before.in_flight if before else {}), **(change.changed if change else {})}
        return {index: item for index, item in found.items() if item.status not in NODE_MACHINE.terminal}

    def _take_item(self, outcome: Outcome) -> None:
        node = self._graph.nodes[outcome.node_id]
        item = self._item(outcome.node_id, outcome.item_index)
        if item is None or item.attempt != outcome.attempt or item.status not in (_N.DISPATCHED, _N.RUNNING):
            self._decision.stale.append(outcome)
        elif outcome.report is Report.RUNNING:
            self._run_item(node, outcome.item_index, item)
        elif outcome.report is Report.COMPLETED:
            self._end_item(node, outcome.item_index, item, _N.COMPLETED)
        else:
            self._retry_or_fail_item(node, outcome, item)

    def _run_item(self, node: GraphNode, index: int, item: ItemRun) -> None:
        if item.status is _N.DISPATCHED:
            self._record(node.node_id, index, item.status, (_N.RUNNING,))
            self._change(node.node_id).changed[index] = replace(item, status=_N.RUNNING)

    def _retry_or_fail_item(self, node: GraphNode, outcome: Outcome, item: ItemRun) -> None:
        assert node.execution is not None
        index = outcome.item_index
        attempt = self._next_attempt(node.execution, item.attempt, item.failures, outcome)
        if attempt is None:
            self._end_item(node, index, replace(item, failures=item.failures + 1), _N.FAILED, outcome.error)
            return
        self._record(node.node_id, index, item.status, (_N.FAILED, _N.READY), outcome.error)
        self._change(node.node_id).changed[index] = ItemRun(
            _N.READY, attempt.number, attempt.failures, stored=item.stored
        )
        self._dispatch_item(node, index, self._not_before(node, index, attempt))

    def _end_item(self, node: GraphNode, index: int, item: ItemRun, status: NodeStatus, error: str = "") -> bool:
        """Count an ended item. False when its failure ends the fan-out."""
        change = self._change(node.node_id)
        self._record(node.node_id, index, item.status, (status,), error)
        change.changed[index] = ItemRun(status, item.attempt, item.failures, error, item.sent_at, item.stored)
        change.ended += 1
        self._advanced[node.node_id] = None
        if status is _N.COMPLETED:
            change.completed += 1
            return True
        change.failed += 1
        if self._failed_items(node.node_id) <= _tolerated(node, len(change.items)):
            return True
        self._fail_node(node.node_id, f"item {index}: {error}")
        return False

    def _failed_items(self, node_id: str) -> int:
        before = self._run.fan_outs.get(node_id)
        return (before.failed if before else 0) + self._change(node_id).failed

    def _after_items(self, node: GraphNode) -> None:
        self._refill(node)
        if self._node(node.node_id).terminal:
            return
        change = self._change(node.node_id)
        if change.next_index == len(change.items) and self._in_flight(node.node_id) == 0:
            failed = self._failed_items(node.node_id)
            total = len(change.items)
            self._complete(node.node_id, {"total": total, "completed": total - failed, "failed": failed})

    # Propagation and verdict

    def _settle(self) -> None:
        while self._settled and self._decision.status not in JOB_MACHINE.terminal:
            node_id = self._settled.popleft()
            node, run = self._graph.nodes[node_id], self._node(node_id)
            for target in node.successors:
                self._count_down(target, leads_to(node, run, target))
        self._finish_if_done()

    def _count_down(self, node_id: str, led_here: bool) -> None:
        run = self._node(node_id)
        if run.terminal:
            return
        run = replace(run, waiting=run.waiting - 1, live=run.live or led_here)
        self._decision.nodes[node_id] = run
        if run.waiting == 0:
            if run.live:
                self._activate(node_id)
            else:
                self._skip(node_id)

    def _finish_if_done(self) -> None:
        if self._decision.status in JOB_MACHINE.terminal or self._decision.closed < self._run.open_nodes:
            return
        try:
            self._decision.result = self._result()
        except ExpressionError as error:
            self._decision.error = f"the outputs cannot be evaluated: {error}"
            self._job(_J.FAILED)
        else:
            self._job(_J.COMPLETED)

    def _result(self) -> dict[str, Any]:
        if self._graph.outputs is not None:
            return dict(self._graph.outputs.render(self._scope))
        nodes = {node_id: self._node(node_id) for node_id in self._graph.result_nodes()}
        return {
            node_id: run.output
            for node_id, run in nodes.items()
            if run.status is _N.COMPLETED and run.output is not None
        }

    def _close(self, verdict: JobStatus, reason: str, failed_node: str = "") -> None:
        """End the job now: skip what has not begun, cancel what is under way."""
        self._settled.clear()
        for node_id in self._graph.nodes:
            run = self._node(node_id)
            if run.status in (_N.PENDING, _N.READY):
                self._move(node_id, _N.SKIPPED)
            elif run.status in (_N.DISPATCHED, _N.RUNNING):
                self._cancel_node(node_id, run)
            self._cancel_items(node_id)
        self._decision.aggregates.clear()
        self._decision.dispatches.clear()
        self._decision.error = reason
        self._decision.failed_node = failed_node
        self._job(verdict)

    def _cancel_node(self, node_id: str, run: NodeRun) -> None:
        if isinstance(self._graph.nodes[node_id].definition, TaskNode):
            self._decision.cancels.append(Cancel(node_id, SINGLE, run.attempt))
        self._move(node_id, _N.CANCELLED)

    def _cancel_items(self, node_id: str) -> None:
        for index, item in sorted(self._items(node_id).items()):
            change = self._change(node_id)
            under_way = item.status in (_N.DISPATCHED, _N.RUNNING)
            ending = _N.CANCELLED if under_way else _N.SKIPPED
            self._record(node_id, index, item.status, (ending,))
            change.changed[index] = replace(item, status=ending)
            change.ended += 1
            if under_way:
                self._decision.cancels.append(Cancel(node_id, index, item.attempt))


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    failures: int
    delayed: bool


def _tolerated(node: GraphNode, total: int) -> float:
    assert isinstance(node.definition, FanOutNode)
    match node.definition.on_failure:
        case "fail":
            return 0
        case "continue":
            return total
        case Tolerate() as tolerance:
            return tolerance.limit(total)
