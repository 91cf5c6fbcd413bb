"""The difference of two jobs: inputs, definition, states, durations and outputs. Bounded, however large they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from geomill.contract.differences import BeforeAndAfter, JobDifference, NodeDifference, ValueChange
from geomill.contract.jobs import seconds_between
from geomill.store.progress import JobProgress, NodeProgress

MOST_VALUES = 20
MOST_INPUTS = 200
MOST_NODES = 500
LONGEST_VALUE = 500
_ABSENT = object()


def job_difference(before: JobProgress, after: JobProgress) -> JobDifference:
    inputs = _values(before.job.input_params, after.job.input_params)
    results = _values(before.job.result_data, after.job.result_data)
    nodes = _nodes(before, after)
    return JobDifference(
        job_id=before.job.job_id,
        other_job_id=after.job.job_id,
        workflow_id=BeforeAndAfter(before=before.job.workflow_id, after=after.job.workflow_id),
        definition_hash=BeforeAndAfter(before=before.job.definition_hash, after=after.job.definition_hash),
        same_definition=before.job.definition_hash == after.job.definition_hash,
        status=BeforeAndAfter(before=before.job.status.value, after=after.job.status.value),
        run_seconds=BeforeAndAfter(before=_job_seconds(before), after=_job_seconds(after)),
        inputs=inputs[:MOST_INPUTS],
        results=results[:MOST_VALUES],
        nodes=nodes[:MOST_NODES],
        more=len(inputs) > MOST_INPUTS or len(results) > MOST_VALUES or len(nodes) > MOST_NODES,
    )


def _job_seconds(progress: JobProgress) -> float | None:
    return seconds_between(progress.job.started_at, progress.job.completed_at)


def _nodes(before: JobProgress, after: JobProgress) -> list[NodeDifference]:
    earlier = {node.node_id: node for node in before.nodes}
    later = {node.node_id: node for node in after.nodes}
    differences = (
        _node(node_id, earlier.get(node_id), later.get(node_id)) for node_id in dict.fromkeys([*earlier, *later])
    )
    return [difference for difference in differences if difference]


def _node(node_id: str, before: NodeProgress | None, after: NodeProgress | None) -> NodeDifference | None:
    """Return the difference of a node, or None if state, error and output are equal. Durations alone always differ."""
    status = BeforeAndAfter(before=before.status.value if before else None, after=after.status.value if after else None)
    error = BeforeAndAfter(before=_cut(before.error) if before else None, after=_cut(after.error) if after else None)
    outputs = (before.output if before else None, after.output if after else None)
    if status.before == status.after and error.before == error.after and outputs[0] == outputs[1]:
        return None
    return NodeDifference(
        node_id=node_id,
        status=status,
        run_seconds=BeforeAndAfter(before=_node_seconds(before), after=_node_seconds(after)),
        error=error,
        output_changed=outputs[0] != outputs[1],
        outputs=_values(*outputs)[:MOST_VALUES],
    )


def _node_seconds(node: NodeProgress | None) -> float | None:
    return seconds_between(node.started_at, node.completed_at) if node else None


def _values(before: Any, after: Any) -> list[ValueChange]:
    """Return the keys whose values differ. A value that is no mapping has the empty name."""
    earlier, later = _mapping(before), _mapping(after)
    changes = []
    for name in dict.fromkeys([*earlier, *later]):
        old, new = earlier.get(name, _ABSENT), later.get(name, _ABSENT)
        if old is _ABSENT:
            changes.append(ValueChange(name=name, change="added", after=_cut(new)))
        elif new is _ABSENT:
            changes.append(ValueChange(name=name, change="removed", before=_cut(old)))
        elif old != new:
            changes.append(ValueChange(name=name, change="changed", before=_cut(old), after=_cut(new)))
    return changes


def _mapping(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"": value}


def _cut(value: Any) -> Any:
    """Return the value, or the beginning of its JSON if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
