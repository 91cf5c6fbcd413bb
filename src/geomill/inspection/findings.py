"""Collects the problems of a file, so that all of them can be told at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from geomill.contract.inspection import InspectionProblem, OptionRemedy, Severity
from geomill.datasets.refusals import DataRefused
from geomill.errors import Problem
from geomill.sdk import HandlerError

MOST_CHOICES = 50
MOST_WARNINGS = 100
"""The most findings of one kind, so that a file of very many columns has an answer of a bounded size."""
FILE = "file_name"
OPTIONS = "processing_options"


class Findings:
    def __init__(self) -> None:
        self.problems: list[InspectionProblem] = []

    def collecting(self) -> _Collecting:
        """Return a context that notes a refusal in its block as a problem. The block ends with it."""
        return _Collecting(self)

    def add(
        self, code: str, message: str, remedies: Mapping[str, Any] | None = None, severity: Severity = Severity.ERROR
    ) -> None:
        options = [_remedy(option, value) for option, value in (remedies or {}).items()]
        field = f"{OPTIONS}.{options[0].option}" if options else FILE
        problem = InspectionProblem(code=code, severity=severity, field=field, message=message, remedies=options)
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, code: str, messages: Sequence[str], **remedies: Any) -> None:
        for message in messages[:MOST_WARNINGS]:
            self.add(code, message, remedies, Severity.WARNING)
        if len(messages) > MOST_WARNINGS:
            more = f"and {len(messages) - MOST_WARNINGS:,} more of this kind"
            self.add(code, more, remedies, Severity.WARNING)

    def suggest(self, code: str, option: str, value: Any) -> None:
        """Suggest a value for the option that solves a problem."""
        for problem in self.problems:
            for remedy in problem.remedies:
                if problem.code == code and remedy.option == option:
                    remedy.value = value

    def refuse_options(self, error: ValidationError) -> None:
        for fault in error.errors(include_url=False, include_context=False):
            name = ".".join(str(part) for part in fault["loc"])
            self.add("invalid_option", f"{name}: {fault['msg']}", {name: None})

    @property
    def has_error(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)


class _Collecting:
    """A class, because type checkers take it that the block of a generator's context never swallows an error."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, HandlerError):
            return False
        remedies = error.remedies if isinstance(error, DataRefused) else {}
        self._findings.add(error.error_code, error.message, remedies)
        return True


def option_problems(problems: Iterable[Problem]) -> list[InspectionProblem]:
    """Return the problems of processing options that a workflow refuses."""
    return [
        InspectionProblem(
            code="invalid_option",
            severity=Severity.ERROR,
            field=f"{OPTIONS}.{problem.where.removeprefix(f'{OPTIONS}.')}",
            message=str(problem),
        )
        for problem in problems
    ]


def _remedy(option: str, value: Any) -> OptionRemedy:
    if not isinstance(value, list):
        return OptionRemedy(option=option, value=value)
    choices = [str(choice) for choice in value]
    return OptionRemedy(option=option, value=choices[0] if len(choices) == 1 else None, choices=choices[:MOST_CHOICES])
