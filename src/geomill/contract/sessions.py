"""Requests and responses about sessions of the console."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from geomill.contract.inputs import ApiInput
from geomill.domain.access.principal import MayName, Role

Credential = Annotated[SecretStr, Field(min_length=1, max_length=256)]


class SignIn(ApiInput):
    """The credential of somebody who signs in: a key, or the code of a sign-in link."""

    key: Credential | None = Field(default=None, description="An API key")
    code: Credential | None = Field(default=None, description="The code of a sign-in link, which works once")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.key is None) == (self.code is None):
            raise ValueError("give either key or code")
        return self


class CallerView(BaseModel):
    """The caller, and what it may do."""

    subject: str
    roles: list[Role]
    platform_id: str | None
    may_name: MayName
    may: list[str] = Field(
        description="The requests that the caller's roles admit, such as `POST /api/platform/approve`"
    )
    expires_at: datetime | None = Field(description="When the session ends at the latest; null for a key or token")


class BaseMap(BaseModel):
    url: str
    attribution: str


class SessionView(BaseModel):
    """Who calls, how one can sign in, and what the console needs to know about this gateway."""

    caller: CallerView | None = Field(description="Null if nobody is signed in")
    oidc: bool = Field(description="Whether people can sign in at an OIDC issuer")
    version: str
    base_map: BaseMap | None


class NewSignInLink(ApiInput):
    """A sign-in link to create."""

    roles: Annotated[list[Role], Field(min_length=1, max_length=len(Role))] | None = Field(
        default=None, description="Only these of the caller's roles; default: all of them"
    )


class SignInLink(BaseModel):
    """A link that signs in once."""

    url: str
    expires_at: datetime
