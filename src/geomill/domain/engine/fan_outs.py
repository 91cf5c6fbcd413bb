"""Fan-outs in an evaluation. Their items are sent in slices, counted as they end, and retried one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from geomill.domain.engine.decision import Cancel, Dispatch, FanOutChange, Outcome
from geomill.domain.engine.graph import GraphNode
from geomill.domain.engine.overlay import Overlay
from geomill.domain.engine.run import ItemRun, fan_out_items
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import FanOutNode, Tolerate
from geomill.domain.states import NODE_MACHINE, JobStatus, NodeStatus
from geomill.errors import ExpressionError

WINDOW = 5_000
"""How many items of a fan-out without `max_parallel` are under way at once, so that the first items start before the
last are sent."""

SLICES = (100, 500)
"""How many items of a fan-out its first decision sends, and how many a later one may send. The workers begin while the
next slice is written."""

_N = NodeStatus


class FanOuts:
    """The fan-outs of a job. `fail` ends a fan-out, and its job, when more items have failed than it tolerates."""

    def __init__(
        self,
        overlay: Overlay,
        fail: Callable[[str, str], None],
        *,
        window: int = WINDOW,
        slices: tuple[int, int] = SLICES,
    ) -> None:
        self._overlay = overlay
        self._run = overlay.run
        self._decision = overlay.decision
        self._fail = fail
        self._window = window
        self._slices = slices
        self._advanced: dict[str, None] = {}

    def expand(self, node: GraphNode) -> None:
        items = fan_out_items(node, self._overlay.scope)
        if not items:
            self._overlay.complete(node.node_id, {"total": 0, "completed": 0, "failed": 0})
            return
        self._overlay.move(node.node_id, _N.DISPATCHED, _N.RUNNING, detail=f"{len(items)} items")
        self._overlay.job(JobStatus.RUNNING)
        self._decision.fan_outs[node.node_id] = FanOutChange(items, 0)
        self.go_on(node)

    def take(self, outcome: Outcome) -> None:
        node = self._overlay.graph.nodes[outcome.node_id]
        item = self._item(outcome.node_id, outcome.item_index)
        if item is None or item.attempt != outcome.attempt or item.status not in (_N.DISPATCHED, _N.RUNNING):
            self._decision.stale.append(outcome)
        elif outcome.report is TaskReport.RUNNING:
            self._run_item(node, outcome.item_index, item)
        elif outcome.report is TaskReport.COMPLETED:
            self._end_item(node, outcome.item_index, item, _N.COMPLETED)
        else:
            self._retry_or_fail_item(node, outcome, item)

    def look_at_all(self) -> None:
        """Mark all fan-outs as ones that may have room for more items."""
        self._advanced.update(dict.fromkeys(self._run.fan_outs))

    def next_advanced(self) -> GraphNode | None:
        """Return a fan-out in which items have ended or that may have room for more, or None."""
        while self._advanced and not self._overlay.ended:
            node_id, _ = self._advanced.popitem()
            if not self._overlay.node(node_id).terminal:
                return self._overlay.graph.nodes[node_id]
        return None

    def go_on(self, node: GraphNode) -> None:
        """Send as many items as there is room for. Complete the fan-out when all items have ended."""
        self._refill(node)
        if self._overlay.node(node.node_id).terminal:
            return
        change = self._change(node.node_id)
        if change.next_index == len(change.items) and self._in_flight(node.node_id) == 0:
            failed = self._failed_items(node.node_id)
            total = len(change.items)
            self._overlay.complete(node.node_id, {"total": total, "completed": total - failed, "failed": failed})

    def set_going(self, node: GraphNode) -> None:
        """Send items that have begun but were not sent, then go on."""
        for index, item in self._items(node.node_id).items():
            if item.status is _N.PENDING:
                self._overlay.record(node.node_id, index, item.status, (_N.READY,))
                item = replace(item, status=_N.READY)
            if item.status is _N.READY:
                self._change(node.node_id).changed[index] = item
                if not self._dispatch(node, index):
                    return
        self.go_on(node)

    def cancel(self, node_id: str) -> None:
        """Cancel or skip all items of the fan-out that have not ended."""
        for index, item in sorted(self._items(node_id).items()):
            change = self._change(node_id)
            under_way = item.status in (_N.DISPATCHED, _N.RUNNING)
            ending = _N.CANCELLED if under_way else _N.SKIPPED
            self._overlay.record(node_id, index, item.status, (ending,))
            change.changed[index] = replace(item, status=ending)
            change.ended += 1
            if under_way:
                self._decision.cancels.append(Cancel(node_id, index, item.attempt))

    def _refill(self, node: GraphNode) -> None:
        """Send more items if there is room. With `max_parallel` any free place counts; without it, more are sent when
        at most half of the window is under way."""
        assert isinstance(node.definition, FanOutNode)
        change = self._change(node.node_id)
        if self._overlay.paused or change.next_index == len(change.items):
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
            self._overlay.record(node.node_id, index, _N.PENDING, (_N.READY,))
            change.changed[index] = ItemRun(_N.READY)
            if not self._dispatch(node, index):
                return

    def _slice(self, node_id: str) -> int:
        """Return how many more items this decision may send: twice as many as all before it, within `SLICES`."""
        first, most = self._slices
        before = self._run.fan_outs.get(node_id)
        sent = before.next_index if before else 0
        return min(max(2 * sent, first), most) - (self._change(node_id).next_index - sent)

    def _in_flight(self, node_id: str) -> int:
        before = self._run.fan_outs.get(node_id)
        change = self._change(node_id)
        dispatched = change.next_index - (before.next_index if before else 0)
        return (len(before.in_flight) if before else 0) + dispatched - change.ended

    def _dispatch(self, node: GraphNode, index: int, not_before: datetime | None = None) -> bool:
        """Send an item. Returns False if a template failed and thereby ended the fan-out."""
        assert node.execution is not None
        if self._overlay.paused:
            return True
        change = self._change(node.node_id)
        item = change.changed[index]
        try:
            params = node.execution.params.render({**self._overlay.scope, "item": change.items[index], "index": index})
        except ExpressionError as error:
            return self._end_item(node, index, item, _N.FAILED, str(error))
        self._overlay.record(node.node_id, index, _N.READY, (_N.DISPATCHED,))
        change.changed[index] = ItemRun(_N.DISPATCHED, item.attempt, item.failures, "", self._overlay.now, item.stored)
        self._decision.dispatches.append(
            Dispatch(node.node_id, index, item.attempt, item.failures, params, node.execution, not_before)
        )
        return True

    def _run_item(self, node: GraphNode, index: int, item: ItemRun) -> None:
        if item.status is _N.DISPATCHED:
            self._overlay.record(node.node_id, index, item.status, (_N.RUNNING,))
            self._change(node.node_id).changed[index] = replace(item, status=_N.RUNNING)

    def _retry_or_fail_item(self, node: GraphNode, outcome: Outcome, item: ItemRun) -> None:
        assert node.execution is not None
        index = outcome.item_index
        attempt = self._overlay.next_attempt(node.execution, item.attempt, item.failures, outcome)
        if attempt is None:
            self._end_item(node, index, replace(item, failures=item.failures + 1), _N.FAILED, outcome.error)
            return
        self._overlay.record(node.node_id, index, item.status, (_N.FAILED, _N.READY), outcome.error)
        self._change(node.node_id).changed[index] = ItemRun(
            _N.READY, attempt.number, attempt.failures, stored=item.stored
        )
        self._dispatch(node, index, self._overlay.not_before(node, index, attempt))

    def _end_item(self, node: GraphNode, index: int, item: ItemRun, status: NodeStatus, error: str = "") -> bool:
        """Count an ended item. Returns False if its failure ends the fan-out."""
        change = self._change(node.node_id)
        self._overlay.record(node.node_id, index, item.status, (status,), error)
        change.changed[index] = ItemRun(status, item.attempt, item.failures, error, item.sent_at, item.stored)
        change.ended += 1
        self._advanced[node.node_id] = None
        if status is _N.COMPLETED:
            change.completed += 1
            return True
        change.failed += 1
        if self._failed_items(node.node_id) <= _tolerated(node, len(change.items)):
            return True
        self._fail(node.node_id, f"item {index}: {error}")
        return False

    def _failed_items(self, node_id: str) -> int:
        before = self._run.fan_outs.get(node_id)
        return (before.failed if before else 0) + self._change(node_id).failed

    def _change(self, node_id: str) -> FanOutChange:
        change = self._decision.fan_outs.get(node_id)
        if change is None:
            fan_out = self._run.fan_outs[node_id]
            change = self._decision.fan_outs[node_id] = FanOutChange(fan_out.items, fan_out.next_index)
        return change

    def _item(self, node_id: str, index: int) -> ItemRun | None:
        change = self._decision.fan_outs.get(node_id)
        if change and index in change.changed:
            return change.changed[index]
        fan_out = self._run.fan_outs.get(node_id)
        return fan_out.in_flight.get(index) if fan_out else None

    def _items(self, node_id: str) -> dict[int, ItemRun]:
        """Return the items of a fan-out that have begun and not ended."""
        before, change = self._run.fan_outs.get(node_id), self._decision.fan_outs.get(node_id)
        items = {**(before.in_flight if before else {}), **(change.changed if change else {})}
        return {index: item for index, item in items.items() if item.status not in NODE_MACHINE.terminal}


def _tolerated(node: GraphNode, total: int) -> float:
    assert isinstance(node.definition, FanOutNode)
    match node.definition.on_failure:
        case "fail":
            return 0
        case "continue":
            return total
        case Tolerate() as tolerance:
            return tolerance.limit(total)
