"""Looks into a file for its submitter: with the workflow that would run, and the problems of its options."""

from __future__ import annotations

from typing import Any

from geomill.contract.inspection import Inspection, InspectionOrder, InspectionProblem, Severity
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.platform import Platform
from geomill.domain.assets.submission import Submission
from geomill.domain.engine.checks.handlers import tasks
from geomill.domain.engine.inputs import option_faults
from geomill.domain.engine.starting import Starter
from geomill.domain.engine.workflow import Workflow
from geomill.errors import NotFoundError
from geomill.inspection.findings import option_problems
from geomill.platform.desk import Desk
from geomill.platform.inspector import Inspector
from geomill.platform.preflight import missing, source_names
from geomill.platform.submit import FACT_NAMES

READERS = ("raster.", "vector.")
"""The beginnings of the names of handlers that open a file as data."""
MOST_FILES = 3
"""The files of one submission that a dry run looks into."""


async def inspect(
    desk: Desk, inspector: Inspector, platform: Platform, order: InspectionOrder, actor: Actor
) -> Inspection:
    """Look into a file that the caller could submit. A container that the platform may not read has no files for its
    partners."""
    source = source_names(order.container_name, [order.file_name])[0]
    if actor.starter is Starter.PARTNERS and not platform.may_read(order.container_name):
        raise missing(source)
    try:
        inspection = await inspector.inspect(platform.platform_id, source, order.data_type, order.processing_options)
    except NotFoundError:
        raise missing(source) from None
    data_type = order.data_type or inspection.data_type
    if data_type is None:
        return inspection
    workflow = desk.workflow_for(platform, data_type, order.workflow_id, actor.starter, inspection.size_bytes)
    return with_workflow(inspection, workflow, order.processing_options)


async def inspect_all(
    desk: Desk, inspector: Inspector, platform: Platform, submission: Submission, actor: Actor
) -> list[Inspection]:
    """Look into the first files of a submission."""
    return [
        await inspect(
            desk,
            inspector,
            platform,
            InspectionOrder.model_construct(
                container_name=submission.container_name,
                file_name=name,
                data_type=submission.data_type,
                workflow_id=submission.workflow_id,
                processing_options=submission.processing_options,
            ),
            actor,
        )
        for name in submission.file_names[:MOST_FILES]
    ]


def with_workflow(inspection: Inspection, workflow: Workflow, options: dict[str, Any]) -> Inspection:
    """Add the workflow, and the problems that it has with the options."""
    faulty_fields = {problem.field for problem in inspection.problems if problem.severity is Severity.ERROR}
    faults = option_problems(option_faults(workflow, options, FACT_NAMES & workflow.inputs.keys()))
    of_file = inspection.problems if _reads_data(workflow) else [_harmless(problem) for problem in inspection.problems]
    problems = [*(fault for fault in faults if fault.field not in faulty_fields), *of_file]
    return inspection.model_copy(
        update={
            "workflow_id": workflow.workflow_id,
            "problems": problems,
            "acceptable": all(problem.severity is not Severity.ERROR for problem in problems),
        }
    )


def _reads_data(workflow: Workflow) -> bool:
    """Whether the workflow opens the file as a raster or as vectors. One that only copies it takes any file."""
    return any(task.handler.startswith(READERS) for _, task in tasks(workflow))


def _harmless(problem: InspectionProblem) -> InspectionProblem:
    return problem.model_copy(update={"severity": Severity.WARNING})
