"""Answers what a fan_in asks for: the outputs that led to it, aggregated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.domain.aggregate import aggregate
from geomill.domain.decision import Aggregate, Outcome
from geomill.domain.evaluator import Evaluation
from geomill.domain.run import NodeRun, RunState
from geomill.domain.states import NodeStatus
from geomill.domain.task import Report
from geomill.domain.workflow import FanInNode, FanOutNode
from geomill.store import nodes
from geomill.store.pool import Connection


async def answer_all(conn: Connection, run: RunState, evaluation: Evaluation) -> None:
    """Until no fan_in waits: an answer may lead to the next one."""
    while waiting := evaluation.take_aggregates():
        evaluation.feed([await _answer(conn, run, evaluation, wanted) for wanted in waiting])


async def _answer(conn: Connection, run: RunState, evaluation: Evaluation, wanted: Aggregate) -> Outcome:
    definition = run.graph.nodes[wanted.node_id].definition
    assert isinstance(definition, FanInNode)
    if definition.aggregation == "count":
        counted = sum(_completed(run, evaluation, source) for source in wanted.sources)
        return Outcome(wanted.node_id, wanted.attempt, Report.COMPLETED, output={"count": counted})
    gather = _outcomes if definition.aggregation == "outcomes" else _outputs
    values: list[Any] = []
    for source in wanted.sources:
        values += await gather(conn, run, evaluation, source)
    output = aggregate(definition.aggregation, values)
    return Outcome(wanted.node_id, wanted.attempt, Report.COMPLETED, output=output)


def _completed(run: RunState, evaluation: Evaluation, source: str) -> int:
    """A fan-out has counted its items already: nothing is read for it."""
    if not isinstance(run.graph.nodes[source].definition, FanOutNode):
        return 1
    fan_out = evaluation.decision().nodes.get(source, run.nodes[source])
    return int(fan_out.output["completed"])


async def _outputs(conn: Connection, run: RunState, evaluation: Evaluation, source: str) -> list[Any]:
    if not isinstance(run.graph.nodes[source].definition, FanOutNode):
        changed: Mapping[str, NodeRun] = evaluation.decision().nodes
        return [changed.get(source, run.nodes[source]).output]
    change = evaluation.decision().fan_outs.get(source)
    ended = change.changed.items() if change else ()
    fresh = [index for index, item in ended if item.status is NodeStatus.COMPLETED]
    return await nodes.item_outputs(conn, run.job_id, source, fresh)


async def _outcomes(conn: Connection, run: RunState, evaluation: Evaluation, source: str) -> list[Any]:
    """Of every item, in their order. Those that ended in this very round stand in the decision alone."""
    if not isinstance(run.graph.nodes[source].definition, FanOutNode):
        (output,) = await _outputs(conn, run, evaluation, source)
        return [{"index": None, "status": NodeStatus.COMPLETED.value, "output": output, "error": None}]
    change = evaluation.decision().fan_outs.get(source)
    ended = dict(change.changed) if change else {}
    fresh = [index for index, item in ended.items() if item.status is NodeStatus.COMPLETED]
    found = await nodes.item_outcomes(conn, run.job_id, source, fresh)
    for index, item in ended.items():
        if item.status is NodeStatus.FAILED:
            found[index] = {"index": index, "status": item.status.value, "output": None, "error": item.error}
    return [found[index] for index in sorted(found)]
