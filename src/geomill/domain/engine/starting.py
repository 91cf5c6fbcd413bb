"""Who may start a workflow, and which names a job may not be given.

A partner starts what is meant for partners and what its platform lists. An operator starts everything but the
workflows of the house. Those are started by geomill alone, because their inputs follow from a decision about an asset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from geomill.errors import Forbidden, InputsError, Problem


class Starter(StrEnum):
    """As a value of `started_by` in a workflow: the outermost circle that may start it."""

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
"""Names of revisions, as `naming.blob_prefix` and `naming.table_name` make them."""


def require_starter(workflow_id: str, started_by: Starter, starter: Starter) -> None:
    """Raise `Forbidden` unless the workflow may be started by this circle."""
    if starter in _CIRCLES[started_by]:
        return
    if started_by is Starter.GEOMILL:
        remedy = "approve, revoke or unpublish the asset: that starts it with what belongs to the asset"
    else:
        remedy = "name a workflow that is meant for partners, or ask an operator"
    raise Forbidden(f"the workflow '{workflow_id}' is started by {started_by.value} only", remedy=remedy)


def require_free_names(inputs: Mapping[str, Any]) -> None:
    """Raise `InputsError` if a job without an asset is to write where the revisions of assets lie."""
    problems = [
        Problem(name, f"'{value}' is a name of an asset's revision", "choose a name without '_r' and a number")
        for name, pattern in _OF_A_REVISION.items()
        if isinstance(value := inputs.get(name), str) and pattern.search(value)
    ]
    if problems:
        raise InputsError(f"the inputs name what belongs to an asset: {problems[0]}", problems=problems)
