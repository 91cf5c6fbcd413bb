"""A dry run of a submission: what would happen, and a look into its files."""

from __future__ import annotations

from geomill.api.gateway import Gateway
from geomill.api.views.assets import submission_accepted
from geomill.contract.inspection import Inspection, Severity
from geomill.contract.submissions import SubmissionAccepted
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.submission import Submission
from geomill.errors import InputsError, Problem
from geomill.platform.inspecting import inspect_all
from geomill.platform.submit import submit
from geomill.store import platforms


async def rehearse(
    gateway: Gateway, submission: Submission, actor: Actor, *, inspect: bool = True
) -> SubmissionAccepted:
    """Return what a submission would do. If its options are refused, the error also has the problems of its files.

    The files are inspected while no database connection is held."""
    async with gateway.connection() as conn:
        platform = await platforms.get(conn, submission.platform_id)
        refusal: InputsError | None = None
        try:
            accepted = await submit(conn, gateway.desk, submission, actor, dry_run=True)
        except InputsError as error:
            refusal = error
    inspections = await inspect_all(gateway.desk, gateway.inspector, platform, submission, actor) if inspect else []
    if refusal is not None:
        raise InputsError(refusal.message, remedy=refusal.remedy, problems=[*refusal.problems, *_problems(inspections)])
    return submission_accepted(accepted, dry_run=True, inspections=inspections)


def _problems(inspections: list[Inspection]) -> list[Problem]:
    return [
        Problem(problem.field or "", problem.message)
        for inspection in inspections
        for problem in inspection.problems
        if problem.severity is Severity.ERROR and problem.code != "invalid_option"
    ]
