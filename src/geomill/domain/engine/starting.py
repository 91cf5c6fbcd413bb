"""The rules for who may start a workflow, and which names the inputs of a job must not have.

A partner may start the workflows for partners that its platform lists. An operator may start all but geomill's own
workflows. Only geomill starts those, because their inputs follow from a decision about an asset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from geomill.errors import Forbidden, InputsError, Problem


class Starter(StrEnum):
    """The circles that start workflows. `started_by` of a workflow names the outermost one that may start it."""

    PARTNERS = "partners"
    OPERATORS = "operators"
    GEOMILL = "geomill"


_CIRCLES = {
    Starter.PARTNERS: frozenset({Starter.PARTNERS, Starter.OPERATORS, Starter.GEOMILL}),
    Starter.OPERATORS: frozenset({Starter.OPERATORS, Starter.GEOMILL}),
    Starter.GEOMILL: frozenset({Starter.GEOMILL}),
}
_FOLDER, _TABLE = re.compile(r"(^|/)_r[0-9]+(/|$)"), re.compile(r"_r[0-9]+(_|$)")
_OF_A_REVISION = {"blob_prefix": _FOLDER, "output_folder": _FOLDER, "table_name": _TABLE}
"""Patterns of the names that `naming.blob_prefix` and `naming.table_name` make for revisions."""


def require_starter(workflow_id: str, started_by: Starter, starter: Starter) -> None:
    """Raise `Forbidden` unless the workflow may be started by this circle."""
    if starter in _CIRCLES[started_by]:
        return
    if started_by is Starter.GEOMILL:
        remedy = "approve, revoke or unpublish the asset: that starts the workflow with the right inputs"
    else:
        remedy = "name a workflow for partners, or ask an operator"
    raise Forbidden(f"the workflow '{workflow_id}' is started by {started_by.value} only", remedy=remedy)


def require_free_names(inputs: Mapping[str, Any]) -> None:
    """Raise `InputsError` if a job without an asset would write to the place of an asset's revision."""
    problems = [
        Problem(name, f"'{value}' is the name of an asset's revision", "choose a name without '_r' and a number")
        for name, pattern in _OF_A_REVISION.items()
        if isinstance(value := inputs.get(name), str) and pattern.search(value)
    ]
    if problems:
        raise InputsError(f"the inputs name an output of an asset: {problems[0]}", problems=problems)
