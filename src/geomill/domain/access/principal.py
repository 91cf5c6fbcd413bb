"""The principal: the verified caller. Every kind of credential leads to one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from geomill.errors import Forbidden, InputError, Problem


class Role(StrEnum):
    READER = "reader"
    SUBMITTER = "submitter"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class MayName(StrEnum):
    """Whether a caller may name the person for whom it acts."""

    ALLOWED = "allowed"
    REQUIRED = "required"
    FORBIDDEN = "forbidden"


class Principal(BaseModel):
    """The verified caller. The audit shows the `subject`. `platform_id` binds a submitter to one platform."""

    model_config = ConfigDict(frozen=True)

    subject: Annotated[str, Field(min_length=1, max_length=200)]
    roles: frozenset[Role]
    platform_id: Annotated[str, Field(max_length=50)] | None = None
    may_name: MayName = MayName.ALLOWED

    def has(self, *roles: Role) -> bool:
        """Whether the principal has one of the roles. An administrator has all of them."""
        return Role.ADMIN in self.roles or not self.roles.isdisjoint(roles)

    def named(self, person: str | None) -> str | None:
        """Return the person for whom the caller says to act. That is a claim beside the identity, never the identity.
        Raises if the caller may not name anybody, or must."""
        if person is not None and self.may_name is MayName.FORBIDDEN:
            raise Forbidden(
                f"{self.subject} may not act on behalf of '{person}'",
                remedy="leave out on_behalf_of, or ask an administrator for a key that may name people",
            )
        if person is None and self.may_name is MayName.REQUIRED:
            message = f"{self.subject} must name the person for whom it acts"
            raise InputError(message, problems=[Problem("on_behalf_of", message, "add the person's name or address")])
        return person
