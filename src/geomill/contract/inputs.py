"""Types that requests share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints


def storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("the text has a NUL character")
    return text


Text = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(storable)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+", max_length=512), AfterValidator(storable)]


class ApiInput(BaseModel):
    model_config = ConfigDict(extra="forbid")
