"""A workflow as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator

from geomill.domain.engine.graph import targets
from geomill.domain.engine.workflow import ConditionalNode, FanOutNode, Node, TaskNode, Workflow

_SHAPES = {
    "start": "([{}])",
    "end": "([{}])",
    "task": "[{}]",
    "conditional": "{{{}}}",
    "fan_out": "[/{}\\]",
    "fan_in": "[\\{}/]",
}
_ESCAPES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "\n": " ", "`": "#96;"}


def to_mermaid(workflow: Workflow) -> str:
    """Ids are numbered, since `end` is a word of Mermaid and a dash means an edge; the labels have the names."""
    ids = {node_id: f"n{number}" for number, node_id in enumerate(workflow.nodes)}
    lines = ["flowchart TD"]
    for node_id, node in workflow.nodes.items():
        lines.append(f"    {ids[node_id]}{_SHAPES[node.type].format(_label(node_id, node))}")
    for node_id, node in workflow.nodes.items():
        lines.extend(f"    {ids[node_id]} -->{label} {ids[target]}" for label, target in _edges(node))
    return "\n".join(lines) + "\n"


def _label(node_id: str, node: Node) -> str:
    match node:
        case TaskNode():
            return _quoted(node_id, node.handler)
        case FanOutNode():
            return _quoted(node_id, f"{node.task.handler} for each")
        case _:
            return _quoted(node_id)


def _edges(node: Node) -> Iterator[tuple[str, str]]:
    if isinstance(node, ConditionalNode):
        for branch in node.branches:
            label = branch.name or branch.condition or "otherwise"
            yield from ((f"|{_quoted(label)}|", target) for target in dict.fromkeys(branch.next))
    else:
        yield from (("", target) for target in targets(node))


def _quoted(*lines: str) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)
