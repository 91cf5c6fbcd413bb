"""Rules that templates are checked against before they run: no Python internals, no huge results, no programs.

The sandbox enforces the same rules at run time. This check refuses the workflow earlier, with a line number.
"""

from __future__ import annotations

import re

from jinja2 import nodes
from jinja2.sandbox import MAX_RANGE

from geomill.errors import ExpressionError

LONGEST_TEMPLATE = 50_000
LARGEST_PRODUCT = 1_000_000
"""The maximum length of a repeated string or list, such as `'a' * 10**9`. No template needs a longer one."""
LARGEST_BASE, LARGEST_EXPONENT = 1000, 64
MOST_ASSIGNMENTS = 10
_PRIVATE = re.compile(r"__\w+__|\b_[A-Z]\w*__\w")
_PROGRAMS = (nodes.Macro, nodes.CallBlock, nodes.FilterBlock)


def check_rules(text: str, tree: nodes.Template) -> None:
    for node in tree.find_all(nodes.Node):
        if problem := _problem(node):
            raise ExpressionError(f"the template {text[:200]!r} is refused: {problem}")
    if sum(1 for _ in tree.find_all((nodes.Assign, nodes.AssignBlock))) > MOST_ASSIGNMENTS:
        raise ExpressionError(f"the template {text[:200]!r} is refused: it sets more than {MOST_ASSIGNMENTS} names")


def _problem(node: nodes.Node) -> str:
    match node:
        case nodes.Getattr(attr=str() as name) if _PRIVATE.search(name):
            return f"it reads {name}, which belongs to Python"
        case nodes.Const(value=str() as name) if _PRIVATE.search(name):
            return f"it names {name[:60]}, which belongs to Python"
        case nodes.Filter(name="attr"):
            return "it uses the filter attr; write a dot or brackets"
        case nodes.Include() | nodes.Import() | nodes.FromImport() | nodes.Extends():
            return "it reads another file"
        case nodes.For() if node.recursive or any(True for inner in node.body for _ in _loops(inner)):
            return "it has a loop within a loop"
        case nodes.Pow() | nodes.Mul():
            return _size(node)
        case nodes.Call(node=nodes.Name(name="range"), args=arguments):
            longest = max((abs(number) for bound in arguments if (number := _number(bound)) is not None), default=0)
            return f"its range has more than {MAX_RANGE:,} numbers" if longest > MAX_RANGE else ""
    return "it defines a program of its own" if isinstance(node, _PROGRAMS) else ""


def _loops(node: nodes.Node) -> list[nodes.Node]:
    return [node] if isinstance(node, nodes.For) else list(node.find_all(nodes.For))


def _size(node: nodes.BinExpr) -> str:
    if isinstance(node, nodes.Pow):
        left, right = _number(node.left), _number(node.right)
        too_large = (left is not None and abs(left) > LARGEST_BASE) or (
            right is not None and abs(right) > LARGEST_EXPONENT
        )
        return "the power is too large" if too_large else ""
    for text, count in ((node.left, node.right), (node.right, node.left)):
        if isinstance(text, nodes.Const) and isinstance(text.value, str):
            factor = _number(count)
            if factor is not None and len(text.value) * factor > LARGEST_PRODUCT:
                return "the repeated text is too long"
    return ""


def _number(node: nodes.Node) -> float | None:
    """Return the value of a constant expression, infinity if it is beyond all limits, or None."""
    match node:
        case nodes.Const(value=int() | float() as value):
            return float(value) if abs(value) < 1e300 else float("inf")
        case nodes.Neg(node=inner):
            opposite = _number(inner)
            return None if opposite is None else -opposite
        case nodes.Pow(left=left, right=right) | nodes.Mul(left=left, right=right):
            first, second = _number(left), _number(right)
            if first is None or second is None:
                return None
            if isinstance(node, nodes.Mul):
                return first * second
            small = abs(first) <= LARGEST_BASE and abs(second) <= LARGEST_EXPONENT
            return float(abs(first) ** abs(second)) if small else float("inf")
    return None
