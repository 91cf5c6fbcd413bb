"""Callers: who may call the gateway, and how the command line calls it."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from geomill.domain.addresses import is_loopback
from geomill.settings.concern import Concern, split_commas

ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class AccessSettings(Concern):
    """Callers of the gateway other than holders of its keys, and rate limits."""

    oidc_issuer: Annotated[str | None, Field(description="Issuer whose tokens (JWT) are accepted; default: none")] = (
        None
    )
    oidc_audience: Annotated[
        str | None, Field(description="Audience that a token's `aud` must contain; required with an issuer")
    ] = None
    oidc_jwks_url: Annotated[
        str | None, Field(description="URL of the issuer's keys; default: from its discovery document")
    ] = None
    oidc_role_claim: Annotated[
        str, Field(min_length=1, description="Claim with the roles; dots separate nested names")
    ] = "roles"
    oidc_platform_claim: Annotated[str, Field(min_length=1, description="Claim with a submitter's platform")] = (
        "platform_id"
    )
    oidc_subject_claim: Annotated[
        Literal["sub", "preferred_username", "email"], Field(description="Claim with the name of the caller")
    ] = "sub"
    oidc_algorithms: Annotated[
        list[str],
        NoDecode,
        Field(min_length=1, description="Accepted signature algorithms, asymmetric ones only, comma-separated"),
    ] = Field(default_factory=lambda: ["RS256", "ES256"])
    oidc_leeway_seconds: Annotated[
        float, Field(ge=0, le=300, description="Seconds by which the issuer's clock may differ")
    ] = 30.0
    submit_rate: Annotated[float, Field(gt=0, description="Submissions per second of one caller, on average")] = 100.0
    submit_burst: Annotated[int, Field(ge=1, description="Submissions of one caller in a burst")] = 1000
    metrics_key: Annotated[
        Annotated[SecretStr, Field(min_length=32)] | None,
        Field(description="Key for `/metrics` of `geomill serve --zone external`, which has no other keys"),
    ] = None
    body_limit: Annotated[int, Field(ge=1000, description="Maximum size of a request body in bytes")] = 1_000_000
    cors_origins: Annotated[
        list[str], NoDecode, Field(description="Origins whose web pages may call the API, comma-separated")
    ] = Field(default_factory=list)

    _lists = field_validator("oidc_algorithms", "cors_origins", mode="before")(split_commas)

    @field_validator("oidc_issuer", "oidc_jwks_url")
    @classmethod
    def _encrypted(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "")
        if value and not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))):
            raise ValueError("must start with https://, unless it is on this machine")
        return value

    @field_validator("oidc_algorithms")
    @classmethod
    def _asymmetric(cls, value: list[str]) -> list[str]:
        if unknown := [name for name in value if name not in ASYMMETRIC]:
            raise ValueError(f"{unknown[0]} is not one of {', '.join(ASYMMETRIC)}")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: list[str]) -> list[str]:
        for origin in value:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
                raise ValueError(f"'{origin}' is not an origin such as https://console.example.org")
        return value

    @field_validator("metrics_key")
    @classmethod
    def _one_word(cls, value: SecretStr | None) -> SecretStr | None:
        text = value.get_secret_value() if value else ""
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("must be printable ASCII without a space, so that a header can carry it")
        return value

    @field_validator("oidc_audience")
    @classmethod
    def _not_empty(cls, value: str | None) -> str | None:
        return value or None


class ClientSettings(Concern):
    """The gateway that the command line calls, and the key for it."""

    url: Annotated[str | None, Field(description="URL of the gateway that the command line calls")] = None
    key: Annotated[SecretStr | None, Field(description="API key that the command line sends to it")] = None

    @field_validator("url")
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must start with https:// or http://")
        return value
