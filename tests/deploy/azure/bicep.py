"""Reads Bicep by its grammar, as far as our files need it. There is no compiler: types of resources are not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

FOLDER = Path(__file__).parents[3] / "deploy/azure"
DECLARATIONS = ("parameter_declaration", "variable_declaration", "resource_declaration", "module_declaration")
LOOP_NAMES = ("loop_variable", "loop_enumerator")


def text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text else ""


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def value_of(node: Node) -> Any:
    """Return a literal as Python has it. A string with an interpolation keeps it; anything else is its source text."""
    match node.type:
        case "string":
            return "".join(text(child) for child in node.named_children)
        case "number":
            return int(text(node))
        case "boolean":
            return text(node) == "true"
        case "array":
            return [value_of(child) for child in node.named_children if child.type != "comment"]
        case "object":
            return dict(property_of(child) for child in node.named_children if child.type == "object_property")
    return text(node)


def property_of(node: Node) -> tuple[str, Any]:
    name, value = node.named_children[0], node.named_children[-1]
    return (value_of(name) if name.type == "string" else text(name)), value_of(value)


@dataclass(frozen=True)
class BicepFile:
    path: Path

    @cached_property
    def root(self) -> Node:
        return Parser(Language(tree_sitter_bicep.language())).parse(self.path.read_bytes()).root_node

    @property
    def errors(self) -> list[str]:
        wrong = [node for node in walk(self.root) if node.type == "ERROR" or node.is_missing]
        return [f"line {node.start_point[0] + 1}: {text(node)[:60]!r}" for node in wrong]

    def declared(self, kind: str) -> dict[str, Node]:
        return {text(node.named_children[0]): node for node in self._top(kind)}

    def _top(self, kind: str) -> Iterator[Node]:
        for node in self.root.children:
            if node.type == kind:
                yield node
            else:  # a declaration with decorators is inside another node
                yield from (child for child in node.children if child.type == kind)

    @property
    def required(self) -> set[str]:
        """The parameters without a default."""
        nodes = self.declared("parameter_declaration")
        return {name for name, node in nodes.items() if not any(child.type == "=" for child in node.children)}

    @property
    def outputs(self) -> set[str]:
        return set(self.declared("output_declaration"))

    @property
    def resources(self) -> list[str]:
        """Types with their versions."""
        return [value_of(node.named_children[1]) for node in self.declared("resource_declaration").values()]

    def modules(self) -> Iterator[tuple[str, Path, dict[str, Any]]]:
        for name, node in self.declared("module_declaration").items():
            (body,) = (child for child in walk(node) if child.type == "object" and child.parent in _bodies(node))
            yield name, self.path.parent / value_of(node.named_children[1]), value_of(body)

    def variable(self, name: str) -> Any:
        return value_of(self.declared("variable_declaration")[name].named_children[-1])

    def objects(self) -> Iterator[dict[str, Any]]:
        for node in walk(self.root):
            if node.type == "object":
                yield value_of(node)

    def unknown_names(self) -> set[str]:
        """Names that are used and declared nowhere. Functions are calls, and not names here."""
        declared = {name for kind in DECLARATIONS for name in self.declared(kind)}
        declared |= {text(node) for node in walk(self.root) if node.type in LOOP_NAMES}
        declared |= {
            text(node.child_by_field_name("initializer")) for node in walk(self.root) if node.type == "for_statement"
        }
        declared |= {
            text(child)
            for node in walk(self.root)
            if node.type == "lambda_expression"
            for child in node.named_children[:-1]
        }
        return {text(node) for node in walk(self.root) if _is_used(node)} - declared

    def unused_names(self) -> set[str]:
        used = {text(node) for node in walk(self.root) if _is_used(node)}
        kinds = ("parameter_declaration", "variable_declaration")
        return {name for kind in kinds for name in self.declared(kind)} - used


def _bodies(node: Node) -> list[Node | None]:
    return [node, *(child for child in node.children if child.type in ("if_statement", "for_statement"))]


def _is_used(node: Node) -> bool:
    parent = node.parent
    if node.type != "identifier" or parent is None:
        return False
    if parent.type in (*DECLARATIONS, "output_declaration"):
        return node != parent.named_children[0]
    if parent.type == "object_property":
        return node != parent.named_children[0]
    if parent.type == "call_expression":
        return node != parent.named_children[0]
    return parent.type != "decorator"


FILES = [BicepFile(path) for path in sorted(FOLDER.rglob("*.bicep"))]
