"""Sessions of the console: a browser that has signed in. The database stores a hash of the token, never the token.

A one-time sign-in link is a session that has not begun: using it gives the row another token and begins it, in one
statement, so a link works once.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from pydantic import AwareDatetime, Field

from geomill.domain.access.principal import MayName, Principal, Role
from geomill.domain.entity import Check, Entity, ForeignKey, Index, Key, Now, Subject

_SHAPE = re.compile(r"gms_[A-Za-z0-9_-]{43}")
ROTATION_GRACE_SECONDS = 60
"""How long the token before a rotation still works: requests under way carry it."""


@dataclass(frozen=True, slots=True)
class SessionToken:
    """The token of a session or of a sign-in link. It is random and long, so a plain hash of it is safe to store."""

    _value: str = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        return cls(f"gms_{secrets.token_urlsafe(32)}")

    @classmethod
    def parse(cls, text: str) -> Self | None:
        return cls(text) if _SHAPE.fullmatch(text) else None

    def reveal(self) -> str:
        return self._value

    def hash(self) -> str:
        return hashlib.sha256(self._value.encode()).hexdigest()


class ConsoleSession(Entity):
    """A session, or a sign-in link while `begun_at` is null. It ends with its key, if it has one."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "console_sessions"
    __sql_primary_key__: ClassVar = ("token_hash",)
    __sql_foreign_keys__: ClassVar = (ForeignKey(("key_id",), "app.api_keys", ("key_id",)),)
    __sql_indexes__: ClassVar = (
        Index("idx_console_sessions_previous", ("previous_hash",), where="previous_hash IS NOT NULL"),
        Index("idx_console_sessions_expiry", ("expires_at",)),
        Index("idx_console_sessions_key", ("key_id",)),
    )
    __sql_checks__: ClassVar = (Check("console_sessions_roles", "jsonb_array_length(roles) > 0"),)

    token_hash: Key = Field(description="SHA-256 of the token", repr=False)
    previous_hash: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="SHA-256 of the token before the last rotation", repr=False
    )
    rotated_at: AwareDatetime | None = None
    key_id: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="The key that signed in; null for a person of the OIDC issuer"
    )
    subject: Subject
    roles: list[Role]
    platform_id: Annotated[str, Field(max_length=50)] | None = None
    may_name: MayName = MayName.ALLOWED
    created_at: Now
    begun_at: AwareDatetime | None = Field(default=None, description="Null for a link that nobody has used")
    last_used_at: AwareDatetime | None = Field(default=None, description="To the minute")
    expires_at: AwareDatetime

    @property
    def principal(self) -> Principal:
        return Principal(
            subject=self.subject, roles=frozenset(self.roles), platform_id=self.platform_id, may_name=self.may_name
        )
