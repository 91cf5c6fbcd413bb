"""Handlers and workflow texts to try the loader with."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, computed_field, field_validator, model_validator

from geomill.domain.engine.handler import HandlerInfo
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.workflow import Workflow
from geomill.errors import Problem, WorkflowError
from geomill.workflows.loader import load_text

QUEUES = TASK_QUEUES
MARK = "# <-"


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


class SampleEchoOutput(BaseModel):
    echoed_params: dict[str, Any]
    task_id: str


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    blob_name: str
    size: Annotated[int, Field(ge=0, validation_alias=AliasChoices("size", "bytes"))] = 0
    mode: Literal["fast", "safe"] = "fast"
    bounds: tuple[float, float] | None = None

    @field_validator("blob_name")
    @classmethod
    def _relative(cls, value: str) -> str:
        if value.startswith("/"):
            raise ValueError("must be relative")
        return value


class Fussy(BaseModel):
    """A model whose validator expects values that may not be known yet."""

    first: int = 1
    second: int = 2

    @model_validator(mode="after")
    def _ordered(self) -> Fussy:
        if self.first > self.second:
            raise ValueError("first must not be above second")
        return self


class Broken(BaseModel):
    values: dict[str, int]

    @model_validator(mode="before")
    @classmethod
    def _explode(cls, value: Any) -> Any:
        return {"values": {"n": value["values"]["n"]}}


class Band(BaseModel):
    name: str
    mean: float | None = None


class Info(BaseModel):
    size_mb: float
    bands: list[Band]
    extra: dict[str, Band] = {}
    shape: tuple[int, int] = (0, 0)
    best: Band | None = None
    either: Band | list[int] = []
    crs: Annotated[str, Field(serialization_alias="srs")] = ""
    free: Anything | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> float:
        return 0.0


HANDLERS = {
    info.name: info
    for info in (
        HandlerInfo("echo", params=Anything, output=SampleEchoOutput, timeout_seconds=60),
        HandlerInfo("strict", queue="container-tasks", params=Strict, output=Info, timeout_seconds=600),
        HandlerInfo("fussy", params=Fussy),
        HandlerInfo("broken", params=Broken),
        HandlerInfo("plain"),
        HandlerInfo("stray", queue="elsewhere"),
    )
}


def text(
    nodes: str = "", *, inputs: str = "", outputs: str = "", head: str = "workflow_id: sample\nname: Sample"
) -> str:
    """A workflow file from the parts that matter. Without nodes: START → work → END."""
    parts = [dedent(head).strip("\n")]
    for key, part in (("inputs", inputs), ("nodes", nodes or SIMPLE), ("outputs", outputs)):
        if part:
            parts += [f"{key}:", indent(dedent(part).strip("\n"), "  ")]
    return "\n".join(parts) + "\n"


SIMPLE = """
START: {type: start, next: work}
work:
  handler: echo
  next: END
END: {type: end}
"""


def load(source: str | bytes, file: str = "sample.yaml") -> Workflow:
    return load_text(source, file=file, handlers=HANDLERS, queues=QUEUES)


def problems(source: str | bytes) -> tuple[Problem, ...]:
    """Return all problems that the loader reports."""
    reported: tuple[Problem, ...] = ()
    try:
        load(source)
    except WorkflowError as error:
        reported = error.problems or (Problem("", "an error without problems"),)
    assert all(problem.file == "sample.yaml" and problem.line >= 1 for problem in reported)
    return reported


def marked_line(source: str) -> int:
    """The line that ends in the mark; 1 if there is none."""
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith(MARK)]
    return lines[0] if lines else 1
