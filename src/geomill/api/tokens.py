"""Tokens (JWT) of the OIDC issuer: turns a signed token into a principal, or raises `Unauthenticated` with the
reason."""

from __future__ import annotations

from typing import Any

import jwt
from pydantic import ValidationError

from geomill.api.jwks import IssuerKeys
from geomill.domain.access.api_key import SUBJECT_PREFIX
from geomill.domain.access.principal import Principal, Role
from geomill.errors import Unauthenticated
from geomill.settings import AccessSettings

REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidAudienceError, "it is meant for another audience (aud)"),
    (jwt.InvalidIssuerError, "it comes from another issuer (iss)"),
    (jwt.MissingRequiredClaimError, "it lacks one of exp, iss, aud"),
    (jwt.InvalidAlgorithmError, "its algorithm is not accepted"),
    (jwt.InvalidSignatureError, "its signature is wrong"),
)


class Tokens:
    """Verifies tokens. The key comes from the issuer and the algorithm from the settings: nothing in a token decides
    how it is verified."""

    def __init__(self, settings: AccessSettings) -> None:
        assert settings.oidc_issuer is not None
        self._settings = settings
        self._keys = IssuerKeys(settings.oidc_issuer, settings.oidc_jwks_url)

    @classmethod
    def of(cls, settings: AccessSettings) -> Tokens | None:
        return cls(settings) if settings.oidc_issuer else None

    async def principal(self, token: str) -> Principal:
        return await self.person(token, self._settings.oidc_audience)

    async def person(self, token: str, audience: str | None, nonce: str | None = None) -> Principal:
        """Return the principal of a token for this audience; of an ID token also with the nonce that was sent."""
        try:
            claims = await self._claims(token, audience)
            if nonce is not None and claims.get("nonce") != nonce:
                raise Unauthenticated("the token is not accepted: it answers another sign-in (nonce)")
            return self._principal(claims)
        except (jwt.PyJWTError, RecursionError, ValueError) as error:
            reason = next((words for kind, words in REASONS if isinstance(error, kind)), "it cannot be read")
            raise Unauthenticated(f"the token is not accepted: {reason}") from None

    async def _claims(self, token: str, audience: str | None) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = str(header.get("alg")), header.get("kid", "")
        if algorithm not in self._settings.oidc_algorithms:
            raise jwt.InvalidAlgorithmError
        key = await self._keys.get(key_id, algorithm)
        if key is None:
            raise Unauthenticated("the token is not accepted: the issuer has no such key")
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=audience,
            issuer=self._settings.oidc_issuer,
            leeway=self._settings.oidc_leeway_seconds,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _principal(self, claims: dict[str, Any]) -> Principal:
        subject, platform = (
            claims.get(self._settings.oidc_subject_claim),
            claims.get(self._settings.oidc_platform_claim),
        )
        roles = _roles(_inward(claims, self._settings.oidc_role_claim))
        if not isinstance(subject, str) or not subject.isprintable() or subject.startswith(SUBJECT_PREFIX):
            raise Unauthenticated(
                f"the token is not accepted: '{self._settings.oidc_subject_claim}' is not a valid subject"
            )
        if not roles:
            raise Unauthenticated(
                f"the token is not accepted: '{self._settings.oidc_role_claim}' has none of {', '.join(Role)}"
            )
        if Role.SUBMITTER in roles and not platform:
            raise Unauthenticated(
                "the token is not accepted: a submitter needs a platform, and"
                f" '{self._settings.oidc_platform_claim}' names none"
            )
        try:
            return Principal(subject=subject, roles=roles, platform_id=platform)
        except ValidationError:
            raise Unauthenticated("the token is not accepted: its subject or platform is not valid") from None


def _inward(claims: Any, path: str) -> Any:
    """Return the claim at a path such as `realm_access.roles`. A claim with that literal name comes first."""
    if isinstance(claims, dict) and path in claims:
        return claims[path]
    for name in path.split("."):
        claims = claims.get(name) if isinstance(claims, dict) else None
    return claims


def _roles(value: Any) -> frozenset[Role]:
    """Return the roles of geomill among the issuer's. The claim is a list, or words in one text."""
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(Role(word) for word in words if isinstance(word, str) and word in set(Role))
