"""Outputs that are too large for a row: they lie in the object store, and the row says where, with the hash.

`{"large_output": {"container": "results", "path": …, "sha256": …, "size": …}}` stands for the output in the database.
Of a single node templates never see it: the owner of the job reads the object before it evaluates. Items of a fan-out
may be any number, so what gathers them hands it on as it is, and handlers read it by `ctx.read_output`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import GeomillError

LARGE = 1_000_000
"""Characters of JSON; what is shorter stays in its row."""
LARGEST = 100_000_000
KEY = "large_output"
CONTAINER = "results"
"""In silver."""


def folder_of(job_id: str) -> str:
    """All that a job puts aside lies under it."""
    return f"{job_id[:8]}/{job_id}/"


class LargeOutput(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    container: str = CONTAINER
    path: Annotated[str, Field(max_length=900)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, job_id: str, node_id: str, attempt: int, content: bytes) -> Self:
        """Named by what it is, too: who comes late with another answer to the same attempt overwrites nothing."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = f"{folder_of(job_id)}{node_id}-{attempt}-{sha256[:16]}.json"
        return cls(path=path, sha256=sha256, size=len(content))

    @property
    def name(self) -> ObjectName:
        return ObjectName(Zone.SILVER, self.container, self.path)

    def value(self, content: bytes) -> Any:
        """What was put aside, if this is it."""
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise GeomillError(f"{self.path} is not what was stored there", remedy="retry the job")
        return json.loads(content)

    def output(self) -> dict[str, Any]:
        return {KEY: self.model_dump()}


def large_output(output: Any) -> LargeOutput | None:
    """What an output in a row stands for, if it stands for something."""
    if not isinstance(output, dict) or len(output) != 1 or KEY not in output:
        return None
    try:
        return LargeOutput.model_validate(output[KEY])
    except ValidationError:
        return None  # a handler's own output that happens to have this key
