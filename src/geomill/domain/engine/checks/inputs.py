"""Checks the declarations of a workflow's inputs."""

from __future__ import annotations

from collections.abc import Iterator

from geomill.domain.engine.finding import Finding, Path, shown
from geomill.domain.engine.inputs import type_fits, value_faults
from geomill.domain.engine.patterns import pattern_fault
from geomill.domain.engine.workflow import InputDefinition, Workflow

_NUMBERS = ("integer", "number")
_SIZED = ("string", "array")
_BOUNDS: dict[str, tuple[str, ...]] = {
    "minimum": _NUMBERS,
    "maximum": _NUMBERS,
    "min_length": _SIZED,
    "max_length": _SIZED,
    "pattern": ("string",),
}


def check_inputs(workflow: Workflow) -> Iterator[Finding]:
    for name, definition in workflow.inputs.items():
        path = ("inputs", name)
        faults = [*_bounds(path, definition), *_pattern(path, definition), *_enum(path, definition)]
        yield from faults
        if definition.default is not None and not faults:
            for fault in value_faults(definition, definition.default):
                yield Finding((*path, "default"), f"the default {fault}")


def _bounds(path: Path, definition: InputDefinition) -> Iterator[Finding]:
    for bound, fitting in _BOUNDS.items():
        if getattr(definition, bound) is not None and definition.type not in fitting:
            kinds = " or ".join(fitting)
            yield Finding((*path, bound), f"'{bound}' is for {kinds}, not for {definition.type}")
    if definition.minimum is not None and definition.maximum is not None and definition.minimum > definition.maximum:
        yield Finding((*path, "minimum"), f"the minimum {definition.minimum:g} is above the maximum")
    if (
        definition.min_length is not None
        and definition.max_length is not None
        and definition.min_length > definition.max_length
    ):
        yield Finding((*path, "min_length"), f"the min_length {definition.min_length} is above the max_length")


def _pattern(path: Path, definition: InputDefinition) -> Iterator[Finding]:
    if definition.pattern is not None and (fault := pattern_fault(definition.pattern)):
        yield Finding((*path, "pattern"), f"the pattern is not a regular expression: {fault}")


def _enum(path: Path, definition: InputDefinition) -> Iterator[Finding]:
    for position, value in enumerate(definition.enum or ()):
        if not type_fits(definition, value):
            yield Finding((*path, "enum", position), f"{shown(value)} is not of the type {definition.type}")
