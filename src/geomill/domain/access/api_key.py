"""API keys, the credentials of programs. The database stores a hash, never the key."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from pydantic import AwareDatetime, Field

from geomill.domain.access.principal import MayName, Principal, Role
from geomill.domain.entity import Check, Entity, Index, Key, Name, Now, Subject
from geomill.errors import InputError
from geomill.remedies import BIND_PLATFORM

PREFIX = "gm_"
SUBJECT_PREFIX = "key:"
"""The prefix of the subjects of keys. No token may have such a subject, so none can pose as a key."""

_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 12
_SHAPE = re.compile(rf"gm_([{_ID_ALPHABET}]{{{_ID_LENGTH}}})_([0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class Secret:
    """A key as its holder has it: `gm_<id>_<secret>`. It is long and random, so a plain hash of it is safe to store."""

    key_id: str
    _value: str = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        return cls("".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH)), secrets.token_hex(32))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _SHAPE.fullmatch(text)
        return cls(match[1], match[2]) if match else None

    def reveal(self) -> str:
        """Return the key as text, to be shown once to its holder."""
        return f"{PREFIX}{self.key_id}_{self._value}"

    def hash(self) -> str:
        return hashlib.sha256(self._value.encode()).hexdigest()


class ApiKey(Entity):
    """An API key without its secret. Its holder is the subject `key:<name>`."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "api_keys"
    __sql_primary_key__: ClassVar = ("key_id",)
    __sql_indexes__: ClassVar = (Index("idx_api_keys_name", ("name",), unique=True, where="revoked_at IS NULL"),)
    __sql_checks__: ClassVar = (
        Check("api_keys_roles", "jsonb_array_length(roles) > 0"),
        Check("api_keys_platform", "NOT roles @> '[\"submitter\"]'::jsonb OR platform_id IS NOT NULL"),
    )

    key_id: Key
    secret_hash: Annotated[str, Field(max_length=64, repr=False)] = Field(description="SHA-256 of the secret part")
    name: Name = Field(description="Unique among the keys that are not revoked")
    roles: list[Role]
    platform_id: Annotated[str, Field(max_length=50)] | None = Field(
        default=None, description="The platform that a submitter submits for"
    )
    may_name: MayName = Field(
        default=MayName.ALLOWED, description="Whether its holder may name the person for whom it acts"
    )
    created_by: Subject
    created_at: Now
    expires_at: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None
    last_used_at: AwareDatetime | None = Field(default=None, description="To the minute")

    def fits(self, secret: Secret) -> bool:
        """Whether the secret is that of this key. Takes as long for a wrong secret as for a right one."""
        return hmac.compare_digest(self.secret_hash, secret.hash())

    @property
    def principal(self) -> Principal:
        return Principal(
            subject=f"{SUBJECT_PREFIX}{self.name}",
            roles=frozenset(self.roles),
            platform_id=self.platform_id,
            may_name=self.may_name,
        )


def require_binding(roles: frozenset[Role], platform_id: str | None) -> None:
    """Raise `InputError` for a submitter without a platform. A submitter's credential names its one platform."""
    if Role.SUBMITTER in roles and not platform_id:
        raise InputError("a submitter must be bound to a platform", remedy=BIND_PLATFORM.shell)
