"""The parameters of a task, as its worker gets them.

While the message of an attempt exists, it has them. Afterwards nothing stores them: they are rendered again from the
pinned definition, the job's inputs and the outputs of the nodes that the templates name. Rendering is deterministic, so
this gives what was sent.
"""

from __future__ import annotations

from typing import Any

from geomill.domain.engine.expressions import Compiled
from geomill.domain.engine.graph import Graph, GraphNode
from geomill.domain.engine.job import Job
from geomill.domain.engine.large import large_output
from geomill.domain.engine.run import NodeRun, RunState, fan_out_items, node_run, scope_of
from geomill.domain.ids import SINGLE
from geomill.errors import ExpressionError
from geomill.store import node_views
from geomill.store.pool import Connection


async def params_of(conn: Connection, job: Job, graph: Graph, node: GraphNode, item_index: int) -> Any:
    """Return the parameters of a node or item. Returns None if they cannot be rendered: an output is missing or lies in
    the object store, or the item is not in the list."""
    if node.execution is None:
        return None
    templates = [node.execution.params, *([node.value] if item_index != SINGLE and node.value else [])]
    rows = await node_views.sources(conn, job.job_id, sorted(_named(graph, templates)))
    if any(large_output(row.output) for row in rows):
        return None
    runs = {row.node_id: node_run(row) for row in rows}
    scope = scope_of(RunState(graph, job.job_id, job.input_params), lambda node_id: runs.get(node_id, NodeRun()))
    try:
        if item_index != SINGLE:
            items = fan_out_items(node, scope)
            if item_index >= len(items):
                return None
            scope |= {"item": items[item_index], "index": item_index}
        return node.execution.params.render(scope)
    except ExpressionError:
        return None


def _named(graph: Graph, templates: list[Compiled]) -> set[str]:
    """Return the nodes that the templates name; all nodes if a template names `nodes` as a whole."""
    names: set[str] = set()
    for template in templates:
        for reference in template.references:
            root, *rest = reference.path
            if root == "nodes":
                names |= {str(rest[0])} if rest else set(graph.nodes)
    return names & set(graph.nodes)
