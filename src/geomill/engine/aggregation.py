"""Computes the aggregate of a fan-in.

A large output of an item lies in the object store. Aggregations that pass outputs on unchanged (collect, outcomes,
first, last) pass on its reference. Those that read the values (concat, sum) need the output itself, which is read
outside the main loop. An aggregate that is itself too large for a row is stored there, too. Until then the fan-in stays
`ready`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.domain.engine.aggregate import LOOKS_INSIDE, Aggregation, aggregate, inside
from geomill.domain.engine.decision import Aggregate, Outcome
from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.engine.large import LARGEST, large_output
from geomill.domain.engine.run import NodeRun, RunState
from geomill.domain.engine.task import TaskReport
from geomill.domain.engine.workflow import FanInNode, FanOutNode
from geomill.domain.ids import task_id
from geomill.domain.states import NodeStatus
from geomill.engine.large import NO_REPORT, LargeOutputs
from geomill.errors import ConflictError
from geomill.store import nodes
from geomill.store.inbox import Arrival
from geomill.store.pool import Connection, transaction_time

TOO_MUCH = (
    f"the outputs to aggregate have more than {LARGEST:,} characters of JSON together; "
    "aggregate with 'count', and read the outputs in a later task with ctx.item_outcomes"
)


async def answer_all(
    conn: Connection, run: RunState, evaluation: Evaluation, large: LargeOutputs | None = None
) -> None:
    """Answer all fan-ins that wait. One answer may lead to the next fan-in. Answers that need the object store arrive
    later, through `large`."""
    while waiting := evaluation.take_aggregates():
        outcomes = [await _answer(conn, run, evaluation, request, large) for request in waiting]
        evaluation.feed(outcome for outcome in outcomes if outcome)


async def _answer(
    conn: Connection, run: RunState, evaluation: Evaluation, request: Aggregate, large: LargeOutputs | None
) -> Outcome | None:
    definition = run.graph.nodes[request.node_id].definition
    assert isinstance(definition, FanInNode)
    kind = definition.aggregation
    answer = Outcome(request.node_id, request.attempt, TaskReport.COMPLETED)
    if kind == "count":
        answer.output = {"count": sum(_completed(run, evaluation, source) for source in request.sources)}
        return answer
    try:
        values = await _gathered(conn, run, evaluation, request, kind)
    except nodes.TooMuch:
        answer.report, answer.error = TaskReport.FAILED, TOO_MUCH
        return answer
    to_read = large is not None and kind in LOOKS_INSIDE and any(map(large_output, values))
    answer.output = None if to_read else aggregate(kind, values)
    if large is None or (not to_read and large.holds(answer.output)):
        return answer
    arrival = Arrival(NO_REPORT, run.job_id, None, None, await transaction_time(conn), [answer])
    large.answer(arrival, lambda: _looked_inside(kind, values, large))
    return None


async def _looked_inside(kind: Aggregation, values: list[Any], large: LargeOutputs) -> dict[str, Any]:
    if kind not in LOOKS_INSIDE:
        return aggregate(kind, values)
    asides = [large_output(value) for value in values]
    if kind == "concat" and sum(aside.size for aside in asides if aside) > LARGEST:
        raise ConflictError(TOO_MUCH)
    whole = [
        inside(kind, await large.read(aside)) if aside else value for value, aside in zip(values, asides, strict=True)
    ]
    return aggregate(kind, whole)


async def _gathered(
    conn: Connection, run: RunState, evaluation: Evaluation, request: Aggregate, kind: Aggregation
) -> list[Any]:
    gather = _outcomes if kind == "outcomes" else _outputs
    values: list[Any] = []
    for source in request.sources:
        values += await gather(conn, run, evaluation, source)
    return values


def _completed(run: RunState, evaluation: Evaluation, source: str) -> int:
    """Return how many outputs a source has. A fan-out has already counted its items, so no row is read."""
    if not isinstance(run.graph.nodes[source].definition, FanOutNode):
        return 1
    fan_out = evaluation.decision().nodes.get(source, run.nodes[source])
    return int(fan_out.output["completed"])


async def _outputs(conn: Connection, run: RunState, evaluation: Evaluation, source: str) -> list[Any]:
    if not isinstance(run.graph.nodes[source].definition, FanOutNode):
        changed: Mapping[str, NodeRun] = evaluation.decision().nodes
        return [changed.get(source, run.nodes[source]).output]
    items = await _items(conn, run, evaluation, source)
    return [item["output"] for item in items if item["status"] == NodeStatus.COMPLETED]


async def _outcomes(conn: Connection, run: RunState, evaluation: Evaluation, source: str) -> list[Any]:
    if not isinstance(run.graph.nodes[source].definition, FanOutNode):
        (output,) = await _outputs(conn, run, evaluation, source)
        return [{"index": None, "status": NodeStatus.COMPLETED.value, "output": output, "error": None}]
    return await _items(conn, run, evaluation, source)


async def _items(conn: Connection, run: RunState, evaluation: Evaluation, source: str) -> list[dict[str, Any]]:
    """Return the outcomes of a fan-out's items, in their order. Those that ended in this round are only in the
    decision."""
    change = evaluation.decision().fan_outs.get(source)
    ended = change.changed if change else {}
    fresh = [
        task_id(run.job_id, source, index, item.attempt)
        for index, item in ended.items()
        if item.status is NodeStatus.COMPLETED
    ]
    outcomes = await nodes.item_outcomes(conn, run.job_id, source, fresh, LARGEST)
    for index, item in ended.items():
        if item.status is NodeStatus.FAILED:
            outcomes[index] = {"index": index, "status": item.status.value, "output": None, "error": item.error}
    return [outcomes[index] for index in sorted(outcomes)]
