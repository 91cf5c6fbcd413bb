"""Outputs that are too large for a row: they lie in the object store, and the row says where, with the hash.

`{"large_output": {"container": "results", "path": …, "sha256": …, "size": …}}` stands for the output in the database.
Templates never see it: the owner of the job reads the object before it evaluates.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

LARGE = 1_000_000
"""Characters of JSON; what is shorter stays in its row."""
LARGEST = 100_000_000
KEY = "large_output"
CONTAINER = "results"
"""In silver."""


class LargeOutput(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    container: str = CONTAINER
    path: Annotated[str, Field(max_length=900)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, job_id: str, node_id: str, attempt: int, content: bytes) -> Self:
        """Named by attempt: a late one of an older attempt overwrites nothing."""
        return cls(
            path=f"{job_id[:8]}/{job_id}/{node_id}-{attempt}.json",
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
        )

    def stands_for(self, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.sha256

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
