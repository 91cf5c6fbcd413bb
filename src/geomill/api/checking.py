"""Checks the text of workflow files for callers, one at a time and beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from geomill.contract.workflows import WorkflowCheck, WorkflowProblem
from geomill.domain.engine.handler import Handlers
from geomill.errors import Problem, TooManyRequests, WorkflowError
from geomill.workflows.loader import load_text
from geomill.workflows.mermaid import to_mermaid

FILE = "workflow.yaml"
"""The name of the text in messages."""
MOST_PROBLEMS = 200
MOST_CALLERS = 8


class WorkflowChecks:
    """A check may take seconds of one CPU. A few callers wait for their turn, and further ones are refused, so that
    other requests are answered meanwhile."""

    def __init__(self, handlers: Handlers, queues: Collection[str]) -> None:
        self._handlers, self._queues = handlers, queues
        self._turn = asyncio.Lock()
        self._present = 0

    async def check(self, text: str) -> WorkflowCheck:
        """Return whether the text is a valid workflow, and all its problems. Stores nothing. Raises `TooManyRequests`
        while too many callers wait."""
        if self._present >= MOST_CALLERS:
            raise TooManyRequests(
                "the gateway checks other workflows at the moment", remedy="try again in a moment", retry_after=5.0
            )
        self._present += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._check, text)
        finally:
            self._present -= 1

    def _check(self, text: str) -> WorkflowCheck:
        try:
            workflow = load_text(text, file=FILE, handlers=self._handlers, queues=self._queues)
        except WorkflowError as error:
            problems = [_problem(problem) for problem in error.problems[:MOST_PROBLEMS]]
            return WorkflowCheck(valid=False, problems=problems, problem_count=len(error.problems))
        return WorkflowCheck(
            valid=True,
            problems=[],
            workflow_id=workflow.workflow_id,
            definition_hash=workflow.hash(),
            mermaid=to_mermaid(workflow),
        )


def _problem(problem: Problem) -> WorkflowProblem:
    return WorkflowProblem(
        line=max(problem.line, 1),
        field=_printable(problem.where),
        message=_printable(problem.message),
        hint=_printable(problem.hint),
    )


def _printable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
