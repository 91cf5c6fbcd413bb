"""Compares two definitions of a workflow, for people."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MOST_LINES = 3000
"""Lines of a definition beyond which no text is compared: the comparison takes quadratic time."""


@dataclass(frozen=True, slots=True)
class Difference:
    added: list[str]
    removed: list[str]
    changed: list[str]
    other: list[str]
    """Fields beside the nodes that differ."""
    diff: str | None
    """None if a definition is too long to be compared."""


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """Return the nodes and fields that differ, and a unified diff of both definitions as YAML."""
    old, new = dict(before.get("nodes") or {}), dict(after.get("nodes") or {})
    fields = (before.keys() | after.keys()) - {"nodes"}
    return Difference(
        added=[node_id for node_id in new if node_id not in old],
        removed=[node_id for node_id in old if node_id not in new],
        changed=[node_id for node_id in new if node_id in old and old[node_id] != new[node_id]],
        other=sorted(name for name in fields if before.get(name) != after.get(name)),
        diff=_diff(before, after),
    )


def canonical_yaml(definition: Mapping[str, Any]) -> str:
    """Return a definition as YAML, in the order of its fields and nodes."""
    text: str = yaml.safe_dump(dict(definition), sort_keys=False, allow_unicode=True, width=120)
    return text


def _diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    old, new = canonical_yaml(before).splitlines(), canonical_yaml(after).splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return None
    lines = difflib.unified_diff(old, new, "from", "to", lineterm="")
    return "".join(f"{line}\n" for line in lines)
