"""Checks conditionals and the sources of fan-outs."""

from __future__ import annotations

from collections.abc import Iterator

from geomill.domain.engine.checks.templates import has_template
from geomill.domain.engine.conditions import parse_condition
from geomill.domain.engine.finding import Finding, Path, shown
from geomill.domain.engine.workflow import Branch, ConditionalNode, FanOutNode, Workflow
from geomill.errors import ExpressionError


def check_routing(workflow: Workflow) -> Iterator[Finding]:
    for node_id, node in workflow.nodes.items():
        if isinstance(node, ConditionalNode):
            yield from _conditional(("nodes", node_id, "branches"), node)
        elif isinstance(node, FanOutNode) and not has_template(node.source) and not isinstance(node.source, list):
            yield Finding(
                ("nodes", node_id, "source"),
                f"the source must be a list, not {shown(node.source)}",
                "give a list, or a template whose result is one",
            )


def _conditional(path: Path, node: ConditionalNode) -> Iterator[Finding]:
    defaults = [position for position, branch in enumerate(node.branches) if branch.default]
    if not defaults:
        yield Finding(path, "no branch is the default", "add one with 'default: true' for other values")
    for position in defaults[1:]:
        yield Finding((*path, position, "default"), "there is another default branch", "keep one of them")
    for position, branch in enumerate(node.branches):
        yield from _branch((*path, position), branch)


def _branch(path: Path, branch: Branch) -> Iterator[Finding]:
    if branch.condition is None:
        if not branch.default:
            yield Finding(path, "the branch has neither a condition nor 'default: true'")
        return
    if branch.default:
        yield Finding(path, "the branch has both a condition and 'default: true'", "keep one of the two")
    try:
        parse_condition(branch.condition)
    except ExpressionError as error:
        yield Finding((*path, "condition"), error.message, error.remedy)
