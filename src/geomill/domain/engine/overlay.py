"""A decision in the making: an overlay on the state of a job, which itself stays unchanged."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from geomill.domain.engine.decision import QUIET, Decision, Outcome, Step
from geomill.domain.engine.graph import Execution, GraphNode
from geomill.domain.engine.run import NodeRun, RunState, scope_of
from geomill.domain.engine.task import TaskReport
from geomill.domain.ids import SINGLE, task_id
from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, JobStatus, NodeStatus


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    failures: int
    delayed: bool


class Overlay:
    """The state as decided so far, with the methods that change it. The evaluation of nodes and fan-outs share it."""

    def __init__(self, run: RunState, now: datetime) -> None:
        self.run = run
        self.graph = run.graph
        self.now = now
        self.decision = Decision(status=run.status)
        self.settled: deque[str] = deque()
        """Ended nodes whose successors have not been updated yet."""
        self.scope = scope_of(run, self.node)

    @property
    def ended(self) -> bool:
        return self.decision.status in JOB_MACHINE.terminal

    @property
    def paused(self) -> bool:
        return self.run.paused if self.decision.paused is None else self.decision.paused

    def node(self, node_id: str) -> NodeRun:
        return self.decision.nodes.get(node_id) or self.run.nodes[node_id]

    def move(self, node_id: str, *path: NodeStatus, detail: str = "", **changes: Any) -> None:
        run = self.node(node_id)
        self.record(node_id, SINGLE, run.status, path, detail)
        self.decision.nodes[node_id] = replace(run, status=path[-1], **changes)
        if path[-1] in NODE_MACHINE.terminal:
            self.decision.closed += 1

    def record(
        self, node_id: str, item_index: int, source: NodeStatus, path: Sequence[NodeStatus], detail: str = ""
    ) -> None:
        for target in path:
            NODE_MACHINE.check(source, target)
            if item_index != SINGLE and target in QUIET and source is not NodeStatus.FAILED:
                self.decision.quiet_steps += 1
            else:
                self.decision.steps.append(Step(node_id, item_index, source, target, detail))
            source = target

    def job(self, target: JobStatus) -> None:
        if self.decision.status is not target:
            JOB_MACHINE.check(self.decision.status, target)
            self.decision.status = target

    def complete(self, node_id: str, output: Any) -> None:
        self.move(node_id, NodeStatus.COMPLETED, output=output)
        self.settled.append(node_id)

    def skip(self, node_id: str) -> None:
        self.move(node_id, NodeStatus.SKIPPED)
        self.settled.append(node_id)

    def next_attempt(self, execution: Execution, number: int, failures: int, outcome: Outcome) -> Attempt | None:
        if outcome.report is TaskReport.ABANDONED:
            return Attempt(number + 1, failures, delayed=False)
        self.decision.retries += 1
        failures += 1
        budget = self.graph.workflow.retry_budget
        if budget is not None and self.run.retries + self.decision.retries > budget:
            return None
        if execution.retry.allows(failures=failures, error_code=outcome.error_code, retryable=outcome.retryable):
            return Attempt(number + 1, failures, delayed=True)
        return None

    def not_before(self, node: GraphNode, item_index: int, attempt: Attempt) -> datetime | None:
        if not attempt.delayed:
            return None
        assert node.execution is not None
        seed = task_id(self.run.job_id, node.node_id, item_index, attempt.number)
        return node.execution.retry.not_before(self.now, failures=attempt.failures, seed=seed)
