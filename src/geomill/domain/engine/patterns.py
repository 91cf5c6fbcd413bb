"""Regular expressions of workflow files. They are matched in linear time, because values come from partners.

Python's own engine takes exponential time for some expressions, such as `(a+)+$`, and stops the whole process
meanwhile. Pydantic's engine never does. It has no look-around and no backreferences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError


@lru_cache(maxsize=512)
def _adapter(pattern: str) -> TypeAdapter[str]:
    return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])


def pattern_fault(pattern: str) -> str:
    """Return why the text is not a regular expression; empty if it is one."""
    try:
        _adapter(pattern)
    except (SchemaError, ValueError, RecursionError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        return reason.removeprefix("SchemaError: ").removeprefix("error: ")
    return ""


def matches(pattern: str, value: str) -> bool:
    """Whether the pattern occurs in the value. The pattern was checked when its workflow was loaded."""
    try:
        _adapter(pattern).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True
