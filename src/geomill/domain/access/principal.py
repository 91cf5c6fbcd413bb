"""The principal: the verified caller. Every kind of credential leads to one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Role(StrEnum):
    READER = "reader"
    SUBMITTER = "submitter"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Principal(BaseModel):
    """The verified caller. The audit shows the `subject`. `platform_id` binds a submitter to one platform."""

    model_config = ConfigDict(frozen=True)

    subject: Annotated[str, Field(min_length=1, max_length=200)]
    roles: frozenset[Role]
    platform_id: Annotated[str, Field(max_length=50)] | None = None

    def has(self, *roles: Role) -> bool:
        """Whether the principal has one of the roles. An administrator has all of them."""
        return Role.ADMIN in self.roles or not self.roles.isdisjoint(roles)
