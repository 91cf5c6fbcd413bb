"""Reads the credential from the headers of a request."""

from __future__ import annotations

from starlette.datastructures import Headers

from geomill.errors import Unauthenticated

LONGEST = 8192
REMEDY = "send 'Authorization: Bearer <key or token>' or 'X-API-Key: <key>'"


def credential_of(headers: Headers) -> str | None:
    """Return the credential, or None if there is none. Two different credentials are refused, because a proxy might
    have checked only one of them."""
    credentials = {_bearer(value) for value in headers.getlist("authorization")}
    credentials |= {value.strip() for value in headers.getlist("x-api-key")}
    if len(credentials) > 1:
        raise Unauthenticated("the request has more than one credential", remedy="send exactly one")
    if not credentials:
        return None
    (credential,) = credentials
    if (
        not credential
        or len(credential) > LONGEST
        or not credential.isascii()
        or not credential.isprintable()
        or " " in credential
    ):
        raise Unauthenticated("the credential is neither a key nor a token", remedy=REMEDY)
    return credential


def _bearer(value: str) -> str:
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated("the Authorization header does not use the Bearer scheme", remedy=REMEDY)
    return rest.strip()
