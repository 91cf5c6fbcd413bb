"""Large outputs. They lie in the object store, and the row keeps only their place and hash.

The reference `{"large_output": {"container": "results", "path": …, "sha256": …, "size": …}}` replaces the output in the
database. Templates do not see the reference of a single node: the owner of the job reads the object before it
evaluates. A fan-out may have any number of items, so an aggregate passes their references on, and handlers read the
outputs with `ctx.read_output`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import GeomillError

LARGE = 1_000_000
"""Characters of JSON. A shorter output stays in its row."""
LARGEST = 100_000_000
KEY = "large_output"
CONTAINER = "results"
"""The container in silver."""


def folder_of(job_id: str) -> str:
    """Return the folder of a job's large outputs."""
    return f"{job_id[:8]}/{job_id}/"


class LargeOutput(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    container: str = CONTAINER
    path: Annotated[str, Field(max_length=900)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, job_id: str, node_id: str, attempt: int, content: bytes) -> Self:
        """Return the reference for this content. Its path contains the hash, so a late second output of the same
        attempt overwrites nothing."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = f"{folder_of(job_id)}{node_id}-{attempt}-{sha256[:16]}.json"
        return cls(path=path, sha256=sha256, size=len(content))

    @property
    def name(self) -> ObjectName:
        return ObjectName(Zone.SILVER, self.container, self.path)

    def value(self, content: bytes) -> Any:
        """Return the output from the content of the object. Raises if the hash does not match."""
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise GeomillError(f"the content of {self.path} was changed after it was stored", remedy="retry the job")
        return json.loads(content)

    def output(self) -> dict[str, Any]:
        return {KEY: self.model_dump()}


def large_output(output: Any) -> LargeOutput | None:
    """Return the reference to a large output, or None if the output of the row is a plain one."""
    if not isinstance(output, dict) or len(output) != 1 or KEY not in output:
        return None
    try:
        return LargeOutput.model_validate(output[KEY])
    except ValidationError:
        return None  # a handler's own output that happens to have this key
