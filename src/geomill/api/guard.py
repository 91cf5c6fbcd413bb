"""Admits requests by the access table, before their body is read."""

from __future__ import annotations

import logging

import psycopg
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from geomill.api.access import AccessRules, Admission, Who, admission, admit
from geomill.api.authentication import Authenticator, OutsideAuthenticator
from geomill.api.cookies import require_own_page, session_token
from geomill.api.credentials import REMEDY, credential_of
from geomill.api.limits import SAFE
from geomill.api.problems import respond_to
from geomill.api.rates import Buckets
from geomill.api.session_watch import run_while_valid
from geomill.api.sessions import Sessions
from geomill.domain.access.principal import Principal
from geomill.domain.access.session import SessionToken
from geomill.errors import Forbidden, GeomillError, TooManyRequests, Unauthenticated

log = logging.getLogger(__name__)


class RequestGuard:
    def __init__(self, app: ASGIApp, rules: AccessRules, submissions: Buckets, *, by_sight: bool = True) -> None:
        """`by_sight` says whether to verify credentials on routes where they are optional, since they may widen what a
        caller sees."""
        self._app, self._rules, self._submissions, self._by_sight = app, rules, submissions, by_sight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._admit(scope)
        except (GeomillError, psycopg.Error) as error:
            await respond_to(scope["path"], error)(scope, receive, send)
            return
        admitted = admission(scope)
        if admitted and admitted.token and admitted.rule.endswith("/stream"):
            await run_while_valid(self._app, scope, receive, send, scope["app"].state.sessions, admitted.token)
        else:
            await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> None:
        """Admit the request or raise. A request without a rule has no route either and ends as 404 or 405."""
        match = self._rules.find(scope["method"], scope["path"])
        if match is None:
            return
        rule, who = match
        if who.roles is None and not (who.optional and self._by_sight):
            admit(scope, Admission(rule, None))
            return
        principal, token = await self._identify(scope)
        if principal is None and not who.optional:
            raise Unauthenticated("this request needs a credential", remedy=REMEDY)
        if principal:
            self._require(who, principal, rule)
        admit(scope, Admission(rule, principal, token))
        if principal and scope["method"] not in ("GET", "HEAD"):
            log.info("%s", rule, extra={"action": "request", "subject": principal.subject, "path": scope["path"]})

    async def _identify(self, scope: Scope) -> tuple[Principal | None, SessionToken | None]:
        """Return the principal, or None if the request has no credential, and the session's token if it has one."""
        credential = credential_of(Headers(scope=scope))
        if credential is None:
            return await self._from_session(scope)
        authenticator: Authenticator | OutsideAuthenticator = scope["app"].state.authenticator
        address = scope["client"][0] if scope.get("client") else ""
        try:
            return await authenticator.principal(credential, address), None
        except (Unauthenticated, TooManyRequests) as error:
            log.info("refused: %s", error, extra={"action": "refused", "address": address, "path": scope["path"]})
            raise

    async def _from_session(self, scope: Scope) -> tuple[Principal | None, SessionToken | None]:
        """Return the principal of the session cookie. Browsers send a cookie by themselves, so one that has ended
        counts as none: a public page stays public."""
        sessions: Sessions | None = getattr(scope["app"].state, "sessions", None)
        token = session_token(scope) if sessions else None
        session = await sessions.find(token) if sessions and token else None
        if session is None:
            return None, None
        if scope["method"] not in SAFE:
            require_own_page(scope)
        return session.principal, token

    def _require(self, who: Who, principal: Principal, rule: str) -> None:
        if not who.admits(principal):
            log.info("refused: %s", rule, extra={"action": "refused", "subject": principal.subject})
            needed_roles = " or ".join(sorted(who.roles or ()))
            raise Forbidden(
                f"this request needs the role {needed_roles}", remedy="ask an administrator for a key with that role"
            )
        if who.limited and (seconds := self._submissions.take(principal.subject)):
            raise TooManyRequests(
                f"{principal.subject} exceeds its submission rate",
                remedy="wait before submitting again",
                retry_after=seconds,
            )
