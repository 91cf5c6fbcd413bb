"""The format of workflow files. `checks` examines the relations between nodes."""

from __future__ import annotations

import hashlib
import re
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.domain.engine.retry import RetryPolicy
from geomill.domain.engine.starting import Starter
from geomill.domain.jsonvalue import to_json

NODE_ID = r"^[A-Za-z_][A-Za-z0-9_-]*$"
WORKFLOW_ID = r"^[A-Za-z][A-Za-z0-9_.-]*$"

NodeId = Annotated[str, StringConstraints(pattern=NODE_ID, max_length=64)]
Seconds = Annotated[float, Field(gt=0, le=604_800)]
Queue = Annotated[str, StringConstraints(min_length=1, max_length=64)]


def _not_other(value: Any) -> Any:
    """Give one error for a wrong type. Pydantic's union would report one for each alternative."""
    if isinstance(value, dict | str):
        return value
    raise ValueError("must be a mapping, or one template whose result is a mapping")


Params = Annotated[
    dict[str, Any] | str,
    BeforeValidator(_not_other, json_schema_input_type=dict[str, Any] | str),
    Field(description="Values and {{ templates }} for the handler, or one template whose result is all of them"),
]

DEFAULT_TIMEOUT_SECONDS = 3600.0


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Next = Annotated[
    tuple[NodeId, ...],
    BeforeValidator(_one_or_many, json_schema_input_type=NodeId | list[NodeId]),
    Field(min_length=1, description="The next node, or a list of next nodes"),
]


class Tolerate(_Model):
    """The number of items of a fan-out that may fail, or their share, such as '5%'."""

    tolerate: Annotated[
        str, BeforeValidator(str, json_schema_input_type=str | int), StringConstraints(pattern=r"^\d+(\.\d+)?%?$")
    ]

    def limit(self, total: int) -> float:
        number = Fraction(self.tolerate.rstrip("%"))
        return float(total * number / 100 if self.tolerate.endswith("%") else number)


def _spelled_tolerance(value: Any) -> Any:
    match = re.fullmatch(r"tolerate:\s*(\S+)", value) if isinstance(value, str) else None
    return {"tolerate": match[1]} if match else value


OnFailure = Annotated[
    Literal["fail", "continue"] | Tolerate,
    BeforeValidator(_spelled_tolerance, json_schema_input_type=Literal["fail", "continue"] | Tolerate),
]


class _Node(_Model):
    description: str | None = None


class StartNode(_Node):
    """The node where every job begins. A workflow has exactly one."""

    type: Literal["start"]
    next: Next


class EndNode(_Node):
    """A node where a path ends. A workflow has at least one."""

    type: Literal["end"]


class TaskTemplate(_Model):
    handler: Annotated[str, Field(min_length=1, max_length=64, description="Name of a registered handler")]
    queue: Annotated[Queue | None, Field(description="Queue of the task; default: the handler's")] = None
    params: Params = {}
    timeout_seconds: Annotated[Seconds | None, Field(description="Maximum running time; default: the handler's")] = None
    dispatch_timeout_seconds: Annotated[Seconds | None, Field(description="Maximum waiting time in the queue")] = None
    progress_timeout_seconds: Annotated[
        Seconds | None, Field(description="Maximum time without a progress report before the task counts as hanging")
    ] = None
    retry: RetryPolicy = RetryPolicy()
    circuit_breaker: Annotated[
        CircuitBreaker | None, Field(description="Makes tasks wait while their handler keeps failing")
    ] = None


class TaskNode(_Node, TaskTemplate):
    """Runs a handler on a worker."""

    type: Literal["task"] = "task"
    on_failure: Annotated[
        Literal["fail", "continue"], Field(description="With 'continue', the next nodes run even if this one fails")
    ] = "fail"
    next: Next


class Branch(_Model):
    name: str | None = None
    condition: Annotated[str | None, Field(description="For example \"< 100\", \"== 'x'\" or \"in ['a', 'b']\"")] = None
    default: Annotated[bool, Field(description="Whether this branch is taken if no condition is true")] = False
    next: Next


class ConditionalNode(_Node):
    """Takes the first branch whose condition is true for `condition_field`."""

    type: Literal["conditional"]
    condition_field: Annotated[Any, Field(description="The value that the conditions test")]
    branches: Annotated[tuple[Branch, ...], Field(min_length=1)]


class FanOutNode(_Node):
    """Runs one task for each item of a list. Its templates can use `{{ item }}` and `{{ index }}`."""

    type: Literal["fan_out"]
    source: Annotated[Any, Field(description="A list, or a template whose result is one")]
    task: TaskTemplate
    max_parallel: Annotated[
        int | None, Field(ge=1, description="Maximum number of tasks at once; default: no limit")
    ] = None
    batch_size: Annotated[
        int | None, Field(ge=1, description="Give each task a list of up to this many items as {{ item }}")
    ] = None
    on_failure: OnFailure = "fail"
    next: Next


class FanInNode(_Node):
    """Waits for all nodes that lead to it and aggregates their outputs."""

    type: Literal["fan_in"]
    aggregation: Literal["collect", "outcomes", "concat", "sum", "first", "last", "count"] = "collect"
    next: Next


def _node_type(value: Any) -> Any:
    return value.get("type", "task") if isinstance(value, dict) else getattr(value, "type", None)


Node = Annotated[
    Annotated[StartNode, Tag("start")]
    | Annotated[EndNode, Tag("end")]
    | Annotated[TaskNode, Tag("task")]
    | Annotated[ConditionalNode, Tag("conditional")]
    | Annotated[FanOutNode, Tag("fan_out")]
    | Annotated[FanInNode, Tag("fan_in")],
    Discriminator(_node_type),
]

InputType = Literal["string", "integer", "number", "boolean", "array", "object"]


class InputDefinition(_Model):
    """One input of a workflow. An optional input without a default is null."""

    type: InputType = "string"
    required: Annotated[bool | None, Field(description="Default: true, unless the input has a default")] = None
    default: Any = None
    enum: Annotated[tuple[Any, ...] | None, Field(min_length=1)] = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: Annotated[int | None, Field(ge=0, description="Minimum length of a string or an array")] = None
    max_length: Annotated[int | None, Field(ge=0, description="Maximum length of a string or an array")] = None
    pattern: Annotated[str | None, Field(description="Regular expression for a string")] = None
    description: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_makes_optional(cls, value: Any) -> Any:
        if isinstance(value, dict) and "default" in value and value.get("required") is None:
            return {**value, "required": False}
        return value

    @property
    def is_required(self) -> bool:
        return self.required is not False and self.default is None


class Workflow(_Model):
    """A directed graph of nodes with typed inputs."""

    workflow_id: Annotated[str, StringConstraints(pattern=WORKFLOW_ID, max_length=64)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    version: Annotated[int, Field(ge=1)] = 1
    description: str | None = None
    started_by: Annotated[
        Starter,
        Field(description="Who may start it: 'partners' whose platform lists it, 'operators', or only geomill itself"),
    ] = Starter.OPERATORS
    inputs: dict[NodeId, InputDefinition] = {}
    nodes: Annotated[dict[NodeId, Node], Field(min_length=1)]
    outputs: Annotated[dict[str, Any] | None, Field(description="The result of the job, as {{ templates }}")] = None
    timeout_seconds: Annotated[Seconds | None, Field(description="Deadline of the whole job")] = None
    retry_budget: Annotated[int | None, Field(ge=0, description="Maximum number of retries of all nodes together")] = (
        None
    )

    def body(self) -> dict[str, Any]:
        """Return the JSON that is stored and hashed. It contains all defaults, so a change of a default does not affect
        pinned jobs."""
        return self.model_dump(mode="json", exclude_none=True)

    def hash(self) -> str:
        """Return the hash of the body. The order of nodes counts, because a fan-in collects in that order."""
        return hashlib.sha256(to_json(self.body()).encode()).hexdigest()
