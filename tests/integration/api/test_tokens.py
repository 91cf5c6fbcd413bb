"""Tokens of an OIDC issuer, served over HTTP as a real one: what opens the door, and what does not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from httpx import AsyncClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.integration.api.conftest import bearing
from tests.integration.api.issuer import Issuer
from tests.integration.api.test_jobs import submit


@pytest.fixture
async def client(make_platform: Any, make_client: Any, issuer: Issuer) -> AsyncClient:
    http_client = await make_client(make_platform(), access=issuer.settings())
    del http_client.headers["Authorization"]
    return http_client


async def ask(client: AsyncClient, token: str, path: str = "/api/platforms") -> tuple[int, str]:
    answer = await client.get(path, headers=bearing(token))
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert answer.headers["content-type"] == "application/problem+json"
        assert token not in answer.text
    return answer.status_code, answer.json().get("detail", "")


async def test_a_token_is_as_good_as_a_key(client: AsyncClient, issuer: Issuer) -> None:
    client.headers.update(bearing(issuer.token("operator", "of-somebody-else")))
    accepted = await submit(client)
    assert (await client.get(accepted["status_url"])).json()["submitted_by"] == "ada"
    assert (await client.post("/api/v1/bootstrap/migrate")).status_code == 403
    assert issuer.requests == ["/realms/test/.well-known/openid-configuration", "/realms/test/keys"]


def _unsigned(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims("admin"), None, "none", headers={"kid": "first"})


def _with_the_public_key_as_secret(issuer: Issuer) -> str:
    """Return a token that a verifier would accept if it let the token choose its algorithm."""
    public = issuer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "first"}, issuer.claims("admin")]
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    signature = hmac.new(public, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _of_a_stranger(issuer: Issuer) -> str:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(issuer.claims("admin"), stranger, "RS256", headers={"kid": "first"})


def _with_a_key_of_its_own(issuer: Issuer) -> str:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    header = {
        "kid": "mine",
        "jku": "http://127.0.0.1:1/keys",
        "jwk": json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(stranger.public_key())),
    }
    return jwt.encode(issuer.claims("admin"), stranger, "RS256", headers=header)


def _with_the_shared_secret(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims("admin"), "secret" * 8, "HS256", headers={"kid": "shared"})


def _changed(issuer: Issuer) -> str:
    header, _, signature = issuer.token("reader").split(".")
    body = base64.urlsafe_b64encode(json.dumps(issuer.claims("admin")).encode()).decode().rstrip("=")
    return f"{header}.{body}.{signature}"


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_unsigned, "algorithm is not accepted"),
        (_with_the_public_key_as_secret, "algorithm is not accepted"),
        (_with_the_shared_secret, "algorithm is not accepted"),
        (_of_a_stranger, "signature is wrong"),
        (_changed, "signature is wrong"),
        (_with_a_key_of_its_own, "issuer has no such key"),
        (lambda issuer: issuer.token("admin", algorithm="RS512"), "algorithm is not accepted"),
        (lambda issuer: issuer.token("admin", exp=int(time.time()) - 60), "has expired"),
        (lambda issuer: issuer.token("admin", exp=None), "lacks one of"),
        (lambda issuer: issuer.token("admin", aud=None), "lacks one of"),
        (lambda issuer: issuer.token("admin", nbf=int(time.time()) + 600), "not valid yet"),
        (lambda issuer: issuer.token("admin", aud="others"), "for another audience"),
        (lambda issuer: issuer.token("admin", iss="https://evil.example"), "another issuer"),
        (lambda issuer: issuer.token("admin", iss=issuer.url + "/"), "another issuer"),
        (lambda issuer: issuer.token("emperor"), "none of reader"),
        (lambda issuer: issuer.token(), "none of reader"),
        (lambda issuer: issuer.token("admin", roles={"admin": True}), "none of reader"),
        (lambda issuer: issuer.token("admin", roles=[["admin"], 1, None]), "none of reader"),
        (lambda issuer: issuer.token("admin", sub=None), "'sub' is not a valid subject"),
        (lambda issuer: issuer.token("admin", sub="key:admin"), "'sub' is not a valid subject"),
        (lambda issuer: issuer.token("admin", sub="a\nb"), "'sub' is not a valid subject"),
        (lambda issuer: issuer.token("admin", sub="x" * 201), "is not valid"),
        (lambda issuer: issuer.token("submitter"), "'platform_id' names none"),
        (lambda issuer: issuer.token("submitter", platform_id=["ddh"]), "is not valid"),
        (lambda issuer: "not.a.token", "cannot be read"),
        (lambda issuer: issuer.token("admin")[:-10], "signature is wrong"),
    ],
)
async def test_what_is_refused(client: AsyncClient, issuer: Issuer, make: Any, words: str) -> None:
    status, detail = await ask(client, make(issuer))
    assert status == 401
    assert words in detail


async def test_what_is_accepted(client: AsyncClient, issuer: Issuer) -> None:
    for token in (
        issuer.token("reader", exp=int(time.time()) - 5),
        issuer.token("reader", aud=["others", "geomill"]),
        issuer.token(roles="reader writer"),
        issuer.token("submitter", platform_id="ddh"),
    ):
        assert (await ask(client, token))[0] == 200


async def test_other_claims(make_platform: Any, make_client: Any, issuer: Issuer) -> None:
    issuer.add_key("curve", "EC")
    access = issuer.settings(
        oidc_role_claim="realm_access.roles",
        oidc_subject_claim="email",
        oidc_jwks_url=f"{issuer.url}/keys",
        oidc_algorithms="ES256",
    )
    client = await make_client(make_platform(), access=access)
    claims = {"roles": None, "realm_access": {"roles": ["operator"]}, "email": "ada@example.org"}
    client.headers.update(bearing(issuer.token(key_id="curve", algorithm="ES256", **claims)))
    accepted = await submit(client)
    assert (await client.get(accepted["status_url"])).json()["submitted_by"] == "ada@example.org"
    assert (await ask(client, issuer.token(**claims)))[0] == 401
    assert issuer.requests == ["/realms/test/keys"]


async def test_a_new_key_of_the_issuer_is_found_and_asking_is_limited(client: AsyncClient, issuer: Issuer) -> None:
    assert (await ask(client, issuer.token("reader")))[0] == 200
    issuer.add_key("second")
    before = len(issuer.requests)
    assert (await ask(client, issuer.token("reader", key_id="second")))[0] == 401
    assert len(issuer.requests) == before
    app: Any = client._transport.app  # type: ignore[attr-defined]
    app.state.gateway.authenticator._tokens._keys._may_fetch_at = 0.0
    assert (await ask(client, issuer.token("reader", key_id="second")))[0] == 200
    assert (await ask(client, issuer.token("reader", sub="bob")))[0] == 200
    assert len(issuer.requests) == before + 2


async def test_a_withdrawn_key_goes_and_nobody_waits_for_that(
    client: AsyncClient, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.add_key("second")
    assert (await ask(client, issuer.token("reader")))[0] == 200
    issuer.withdraw("first")
    monkeypatch.setattr("geomill.api.jwks.FRESH_SECONDS", 0.0)
    app: Any = client._transport.app  # type: ignore[attr-defined]
    keys = app.state.gateway.authenticator._tokens._keys
    keys._may_fetch_at = 0.0
    assert (await ask(client, issuer.token("reader", sub="bob")))[0] == 200
    await keys._background
    assert (await ask(client, issuer.token("reader", sub="eve")))[0] == 401


async def test_an_issuer_that_is_away(client: AsyncClient, issuer: Issuer) -> None:
    issuer.away = True
    answer = await client.get("/health", headers=bearing(issuer.token("reader")))
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    before = len(issuer.requests)
    assert (await ask(client, issuer.token("reader")))[0] == 503
    assert len(issuer.requests) == before
    issuer.away = False
    app: Any = client._transport.app  # type: ignore[attr-defined]
    app.state.gateway.authenticator._tokens._keys._may_fetch_at = 0.0
    assert (await ask(client, issuer.token("reader")))[0] == 200


async def test_a_discovery_document_of_somebody_else(client: AsyncClient, issuer: Issuer) -> None:
    token = issuer.token("admin")
    issuer.url += "/other"
    assert (await ask(client, token))[0] == 503


segments = st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="))
objects = st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "crit", "b64", "exp", "iss", "aud", "sub"]),
    st.sampled_from(["RS256", "none", "first"]) | st.integers() | st.none() | st.lists(st.text(max_size=3), max_size=2),
).map(lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("="))
DEEP = base64.urlsafe_b64encode(b"[" * 5000).decode().rstrip("=")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(segments | objects, min_size=1, max_size=4).map(".".join) | st.text("eyJ.abc-_=01", min_size=1))
@example(f"{DEEP}.e30.e30")
@example(f"eyJhbGciOiJSUzI1NiIsImtpZCI6ImZpcnN0In0.{DEEP}.e30")
async def test_any_text_as_a_token(client: AsyncClient, text: str) -> None:
    app: Any = client._transport.app  # type: ignore[attr-defined]
    app.state.gateway.authenticator._failures._levels.clear()
    answer = await client.get("/health", headers=bearing(text))
    assert answer.status_code == 401, answer.text
