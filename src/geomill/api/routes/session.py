"""Routes of the caller's own session: who am I, sign in, sign out, and links that sign in once."""

from __future__ import annotations

import logging
import time

from fastapi import APIRouter, Request, Response

from geomill import __version__
from geomill.api import cookies
from geomill.api.access import RULES, TheAdmission, ThePrincipal
from geomill.api.credentials import credential_of
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.sessions import BaseMap, CallerView, NewSignInLink, SessionView, SignIn, SignInLink
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.session import ConsoleSession, SessionToken
from geomill.errors import ConflictError, Forbidden, Unauthenticated

log = logging.getLogger(__name__)

router = APIRouter(prefix="/api/v1/session", tags=["session"], responses=problem_responses(503))


@router.get("", summary="Get the caller, and how one can sign in", responses=problem_responses(401))
async def get_session(gateway: TheGateway, admitted: TheAdmission, response: Response) -> SessionView:
    """Answers everyone: `caller` is null for somebody who is not signed in."""
    response.headers["Cache-Control"] = "no-store"
    session = await gateway.sessions.find(admitted.token) if admitted.token else None
    return session_view(gateway, admitted.principal, session)


@router.post("", summary="Sign in to the console", responses=problem_responses(401, 403, 429))
async def sign_in(gateway: TheGateway, request: Request, order: SignIn, response: Response) -> SessionView:
    """Sets the session cookie. The request must have the header `X-Geomill-Console`."""
    cookies.require_own_page(request.scope)
    if order.key:
        token, session = await _by_key(gateway, request, order.key.get_secret_value())
    else:
        assert order.code is not None
        token, session = await gateway.sessions.enter(order.code.get_secret_value())
    grant(gateway, request, response, token, session)
    return session_view(gateway, session.principal, session)


async def _by_key(gateway: Gateway, request: Request, text: str) -> tuple[SessionToken, ConsoleSession]:
    secret = Secret.parse(text.strip())
    if secret is None:
        raise Unauthenticated("this is not a key", remedy="a key begins with gm_ and has 80 characters")
    address = request.client.host if request.client else ""
    principal = await gateway.authenticator.principal(secret.reveal(), address)
    return await gateway.sessions.begin(principal, secret.key_id)


def grant(gateway: Gateway, request: Request, response: Response, token: SessionToken, session: ConsoleSession) -> None:
    """Give the browser its cookie."""
    seconds = gateway.sessions.settings.session_seconds
    cookies.set_session(response, request.scope, token, seconds=seconds, public_url=gateway.links.base)
    log.info("signed in", extra={"action": "sign in", "subject": session.subject})


@router.delete("", status_code=204, summary="Sign out", responses=problem_responses(403))
async def sign_out(gateway: TheGateway, admitted: TheAdmission, request: Request, response: Response) -> None:
    if admitted.token:
        await gateway.sessions.end(admitted.token)
    cookies.clear_session(response, request.scope)


@router.post("/renewal", status_code=204, summary="Give the session another token", responses=problem_responses(409))
async def renew_session(gateway: TheGateway, admitted: TheAdmission, request: Request, response: Response) -> None:
    """The console calls it now and then. The session's end stays where it is."""
    if admitted.token is None:
        raise ConflictError("only a session can be renewed", remedy="a key or a token needs no renewal")
    session = await gateway.sessions.find(admitted.token)
    token = await gateway.sessions.rotate(admitted.token)
    if session and token:
        left = max(1, round(session.expires_at.timestamp() - time.time()))
        cookies.set_session(response, request.scope, token, seconds=left, public_url=gateway.links.base)


@router.post("/links", status_code=201, summary="Create a link that signs in once")
async def create_sign_in_link(
    gateway: TheGateway,
    admitted: TheAdmission,
    principal: ThePrincipal,
    request: Request,
    response: Response,
    order: NewSignInLink | None = None,
) -> SignInLink:
    """The first who opens the link is signed in as the caller, perhaps with fewer roles. It works for some minutes."""
    if admitted.token:
        raise Forbidden("a session cannot create a sign-in link", remedy="call with a key or a token")
    narrowed = _narrowed(principal, order.roles if order and order.roles else sorted(principal.roles))
    token, link = await gateway.sessions.create_link(narrowed, _key_id(request))
    base = gateway.links.base or str(request.base_url).rstrip("/")
    response.headers["Cache-Control"] = "no-store"
    log.info("created a sign-in link", extra={"action": "sign in", "subject": principal.subject})
    # The code is in the fragment: browsers do not send it, so it is in no log.
    return SignInLink(url=f"{base}/console/enter#{token.reveal()}", expires_at=link.expires_at)


def _narrowed(principal: Principal, roles: list[Role]) -> Principal:
    if lacking := [role.value for role in roles if not principal.has(role)]:
        raise Forbidden(f"you cannot give the role {lacking[0]}, which you do not have")
    if Role.SUBMITTER in roles and principal.platform_id is None:
        raise Forbidden("a submitter is bound to a platform, and you have none", remedy="create a key for the platform")
    return principal.model_copy(update={"roles": frozenset(roles)})


def _key_id(request: Request) -> str | None:
    secret = Secret.parse(credential_of(request.headers) or "")
    return secret.key_id if secret else None


def session_view(gateway: Gateway, principal: Principal | None, session: ConsoleSession | None) -> SessionView:
    settings = gateway.sessions.settings
    base_map = (
        BaseMap(url=settings.base_map_url, attribution=settings.base_map_attribution) if settings.base_map_url else None
    )
    return SessionView(
        caller=caller_view(principal, session) if principal else None,
        oidc=gateway.oidc is not None,
        version=__version__,
        base_map=base_map,
    )


def caller_view(principal: Principal, session: ConsoleSession | None) -> CallerView:
    return CallerView(
        subject=principal.subject,
        roles=sorted(principal.roles),
        platform_id=principal.platform_id,
        may_name=principal.may_name,
        may=[rule for rule, who in RULES.items() if who.roles is not None and who.admits(principal)],
        expires_at=session.expires_at if session else None,
    )
