"""Options and fields that all pages share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.contract.inputs import ApiInput


class PageOptions(ApiInput):
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    cursor: Annotated[str, Field(max_length=400)] | None = Field(
        default=None, description="`next_cursor` of the previous page"
    )


class CursorPage(BaseModel):
    next_cursor: str | None = Field(
        default=None, description="Pass it as `cursor` to get the next page; null on the last page"
    )
