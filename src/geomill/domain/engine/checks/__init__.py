"""The checks of a workflow beyond the format of its file. Pure: handlers and queues are parameters.

Every check yields findings and none stops the others, so an author sees all errors at once. Only the check of which
node is upstream of which needs a graph without errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from geomill.domain.engine.checks.handlers import check_handlers
from geomill.domain.engine.checks.inputs import check_inputs
from geomill.domain.engine.checks.references import check_references
from geomill.domain.engine.checks.routing import check_routing
from geomill.domain.engine.checks.structure import check_structure
from geomill.domain.engine.checks.templates import read_templates
from geomill.domain.engine.finding import Finding, Path, dotted
from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.workflow import Workflow

MOST_FINDINGS = 100


def check(workflow: Workflow, handlers: Handlers, queues: Collection[str]) -> list[Finding]:
    """Return the findings on a workflow, at most `MOST_FINDINGS` and a note. It may run if there are none."""
    findings = list(islice(_findings(workflow, handlers, queues), MOST_FINDINGS + 1))
    if len(findings) > MOST_FINDINGS:
        findings[-1] = Finding((), f"there are more problems; these are the first {MOST_FINDINGS}")
    return findings


def _findings(workflow: Workflow, handlers: Handlers, queues: Collection[str]) -> Iterator[Finding]:
    structure = list(islice(check_structure(workflow), MOST_FINDINGS))
    yield from structure
    yield from check_inputs(workflow)
    yield from check_handlers(workflow, handlers, queues)
    yield from check_routing(workflow)
    uses, unreadable = read_templates(workflow)
    yield from unreadable
    yield from check_references(workflow, handlers, uses, sound_graph=not structure)


__all__ = ["Finding", "Path", "check", "dotted"]
