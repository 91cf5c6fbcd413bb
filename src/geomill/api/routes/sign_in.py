"""Routes of the sign-in at the OIDC issuer. The browser goes there and comes back; what went wrong is told by the
console's sign-in page."""

from __future__ import annotations

import logging
import re
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse

from geomill.api.cookies import is_secure
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.oidc import OidcSignIn, SignInFlow
from geomill.api.problems import problem_responses
from geomill.api.routes.session import grant
from geomill.errors import NotFoundError, Unauthenticated, UnavailableError

log = logging.getLogger(__name__)

router = APIRouter(prefix="/api/v1/session/oidc", tags=["session"], responses=problem_responses(404, 503))

COOKIE = "geomill-sign-in"
FLOW_SECONDS = 600
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


@router.get("", status_code=303, summary="Sign in at the OIDC issuer", response_class=RedirectResponse)
async def begin_sign_in(gateway: TheGateway, request: Request) -> RedirectResponse:
    oidc, flow = _oidc(gateway), SignInFlow.new()
    response = RedirectResponse(await oidc.address(flow, _return_url(gateway, request)), status_code=303)
    response.set_cookie(
        COOKIE,
        flow.secret,
        max_age=FLOW_SECONDS,
        path=router.prefix,
        secure=is_secure(request.scope, gateway.links.base),
        httponly=True,
        samesite="lax",  # the browser comes back from another site
    )
    response.headers["Cache-Control"] = "no-store"
    return response


@router.get("/return", status_code=303, summary="Come back from the OIDC issuer", response_class=RedirectResponse)
async def finish_sign_in(
    gateway: TheGateway,
    request: Request,
    code: Annotated[str, Query(max_length=4096)] = "",
    state: Annotated[str, Query(max_length=256)] = "",
) -> RedirectResponse:
    """Begins the session, and leads to the console. Other parameters, which issuers add, are ignored."""
    oidc = _oidc(gateway)
    secret = request.cookies.get(COOKIE, "")
    flow = SignInFlow(secret) if _SECRET.fullmatch(secret) else None
    if flow is None or not flow.answers(state):
        return _leave("expired")
    if not code:
        return _leave("denied")
    try:
        principal = await oidc.principal(flow, code, _return_url(gateway, request))
    except Unauthenticated as error:
        log.info("refused: %s", error, extra={"action": "refused", "path": request.url.path})
        return _leave("refused")
    except UnavailableError:
        return _leave("unavailable")
    token, session = await gateway.sessions.begin(principal, None)
    response = _leave()
    grant(gateway, request, response, token, session)
    return response


def _oidc(gateway: Gateway) -> OidcSignIn:
    if gateway.oidc is None:
        raise NotFoundError(
            "this gateway has no OIDC sign-in", remedy="sign in with a key, or set GEOMILL_OIDC_CLIENT_ID"
        )
    return gateway.oidc


def _return_url(gateway: Gateway, request: Request) -> str:
    return f"{gateway.links.base or str(request.base_url).rstrip('/')}{router.prefix}/return"


def _leave(problem: str = "") -> RedirectResponse:
    """Lead to the console, or to its sign-in page with the name of a problem."""
    response = RedirectResponse(f"/console/sign-in?problem={problem}" if problem else "/console", status_code=303)
    response.delete_cookie(COOKIE, path=router.prefix, httponly=True, samesite="lax")
    return response
