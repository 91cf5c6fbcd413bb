"""Sign-in at the OIDC issuer: authorization code with PKCE, done by the gateway. The browser never has a token.

The browser keeps one random secret in a cookie while it visits the issuer. State, nonce and code verifier follow from
it, so the gateway keeps nothing, and an answer that was meant for another browser is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx

from geomill.api.jwks import LARGEST, PATIENCE_SECONDS, discover
from geomill.api.tokens import Tokens
from geomill.domain.access.principal import Principal
from geomill.errors import Unauthenticated, UnavailableError
from geomill.settings import AccessSettings, ConsoleSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class SignInFlow:
    """One visit to the issuer."""

    secret: str

    @classmethod
    def new(cls) -> SignInFlow:
        return cls(secrets.token_urlsafe(32))

    @property
    def state(self) -> str:
        return self._derived("state")

    @property
    def nonce(self) -> str:
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        return _text(hashlib.sha256(self.verifier.encode()).digest())

    def answers(self, state: str) -> bool:
        return hmac.compare_digest(self.state.encode(), state.encode())

    def _derived(self, purpose: str) -> str:
        return _text(hmac.new(self.secret.encode(), f"geomill {purpose}".encode(), hashlib.sha256).digest())


class OidcSignIn:
    """Signs people in. `client_id` is the console's at the issuer."""

    def __init__(self, access: AccessSettings, console: ConsoleSettings) -> None:
        assert access.oidc_issuer is not None
        assert console.oidc_client_id is not None
        self._issuer, self._client_id, self._console = access.oidc_issuer, console.oidc_client_id, console
        self._tokens = Tokens(access)

    @classmethod
    def of(cls, access: AccessSettings, console: ConsoleSettings) -> OidcSignIn | None:
        return cls(access, console) if access.oidc_issuer and console.oidc_client_id else None

    async def address(self, flow: SignInFlow, return_url: str) -> str:
        """Return the issuer's address to which the browser goes. Raises `UnavailableError`."""
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": return_url,
            "scope": self._console.oidc_scopes,
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        url = await self._ask("authorization_endpoint")
        return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"

    async def principal(self, flow: SignInFlow, code: str, return_url: str) -> Principal:
        """Exchange the code for the ID token, and return the person. Raises `Unauthenticated` or `UnavailableError`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": return_url,
            "client_id": self._client_id,
            "code_verifier": flow.verifier,
        }
        if self._console.oidc_client_secret:
            form["client_secret"] = self._console.oidc_client_secret.get_secret_value()
        token = (await self._exchange(form)).get("id_token")
        if not isinstance(token, str):
            raise Unauthenticated("the issuer sent no ID token", remedy="add openid to GEOMILL_OIDC_SCOPES")
        return await self._tokens.person(token, self._client_id, flow.nonce)

    async def _ask(self, name: str) -> str:
        try:
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
                return await discover(client, self._issuer, name)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
            raise self._unavailable(error) from None

    async def _exchange(self, form: dict[str, str]) -> dict[str, Any]:
        url = await self._ask("token_endpoint")
        try:
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
                answer = await client.post(url, data=form, headers={"Accept": "application/json"})
            if 400 <= answer.status_code < 500:
                raise Unauthenticated("the issuer refused the code of this sign-in", remedy="sign in again")
            answer.raise_for_status()
            document = answer.json() if len(answer.content) <= LARGEST else None
        except (httpx.HTTPError, ValueError) as error:
            raise self._unavailable(error) from None
        return document if isinstance(document, dict) else {}

    def _unavailable(self, error: Exception) -> UnavailableError:
        log.warning("the issuer %s does not answer: %s", self._issuer, repr(error), extra={"action": "sign in"})
        return UnavailableError("the OIDC issuer does not answer", remedy="try again in a moment, or use a key")


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
