"""Requests and responses about API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from geomill.contract.inputs import ApiInput
from geomill.contract.paging import CursorPage, PageOptions
from geomill.domain.access.api_key import ApiKey
from geomill.domain.access.principal import MayName, Role
from geomill.domain.assets.platform import PlatformId

LONGEST_LIFE = 3650 * 86_400


def _printable(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("must be printable characters without outer spaces")
    return name


HolderName = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_printable)]


class NewKey(ApiInput):
    """A key to create."""

    roles: Annotated[list[Role], Field(min_length=1, max_length=len(Role))]
    name: HolderName | None = Field(default=None, description="Name of its holder, for the audit; default: its id")
    platform_id: PlatformId | None = Field(default=None, description="The platform that a submitter submits for")
    expires_seconds: Annotated[int, Field(ge=60, le=LONGEST_LIFE, strict=True)] | None = Field(
        default=None, description="Its lifetime; default: until it is revoked"
    )
    may_name: MayName = Field(
        default=MayName.ALLOWED, description="Whether its holder may, must or must not name a person: `on_behalf_of`"
    )

    @model_validator(mode="after")
    def _bound(self) -> Self:
        if Role.SUBMITTER in self.roles and self.platform_id is None:
            raise ValueError("a submitter must be bound to a platform: give platform_id")
        return self


class KeyFilters(PageOptions):
    revoked: bool = Field(default=False, description="Whether to list revoked keys, too")


class KeyView(BaseModel):
    """A key without its secret."""

    key_id: str
    name: str
    roles: list[Role]
    platform_id: str | None
    may_name: MayName
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute")

    @classmethod
    def of(cls, api_key: ApiKey, **more: Any) -> Self:
        return cls(**{name: getattr(api_key, name) for name in KeyView.model_fields}, **more)


class KeyCreated(KeyView):
    key: str = Field(description="The key itself. It is shown only now")


class KeyPage(CursorPage):
    keys: list[KeyView]
