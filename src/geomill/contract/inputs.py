"""Types that requests share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints


def storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("the text has a NUL character")
    return text


def printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("the text has a control character or a line break")
    return text


Text = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(storable)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+", max_length=512), AfterValidator(storable)]

Person = Annotated[
    str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), AfterValidator(printable)
]
"""The name or address of a person whom the caller names."""


class ApiInput(BaseModel):
    model_config = ConfigDict(extra="forbid")
