"""Who may call which route, one line each. Startup fails if a route has no line or a line has no route.

`RequestGuard` (guard.py) applies this table before it reads the body of a request. `confirmed`, a dependency of the
whole app, then checks that the route that runs is the one the guard admitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.routing import iter_route_contexts
from starlette.routing import compile_path
from starlette.types import Scope

from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.session import SessionToken
from geomill.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Who:
    """The callers that a rule admits.

    `roles` is None if the route needs no credential, and empty if any credential will do. On an `optional` route a
    credential may be missing but must be valid if present; it decides what the caller sees. `limited` routes accept
    work and count against the caller's rate.
    """

    roles: frozenset[Role] | None
    limited: bool = False
    optional: bool = False

    def admits(self, principal: Principal) -> bool:
        return not self.roles or principal.has(*self.roles)


EVERYONE = Who(None)
EVERYONE_BY_SIGHT = Who(None, optional=True)
"""The route answers everyone; the credential decides what they see."""
ANY_CREDENTIAL = Who(frozenset())


def only(*roles: Role, limited: bool = False) -> Who:
    """Admit these roles and administrators."""
    return Who(frozenset(roles), limited)


ADMIN, OPERATOR, READER, REVIEWER, SUBMITTER = (
    Role.ADMIN,
    Role.OPERATOR,
    Role.READER,
    Role.REVIEWER,
    Role.SUBMITTER,
)

STAFF = only(READER, REVIEWER, OPERATOR)
"""Roles that may see data of all platforms."""

RULES: Mapping[str, Who] = {
    "GET /health/live": EVERYONE,
    "GET /health/ready": EVERYONE,
    "GET /openapi.json": EVERYONE,
    "GET /docs": EVERYONE,
    "GET /docs/{file}": EVERYONE,
    "GET /": EVERYONE,
    "GET /console": EVERYONE,
    "GET /console/{path:path}": EVERYONE,
    "GET /api/v1/session": EVERYONE_BY_SIGHT,
    "POST /api/v1/session": EVERYONE,
    "DELETE /api/v1/session": EVERYONE_BY_SIGHT,
    "POST /api/v1/session/renewal": ANY_CREDENTIAL,
    "POST /api/v1/session/links": ANY_CREDENTIAL,
    "GET /api/v1/session/oidc": EVERYONE,
    "GET /api/v1/session/oidc/return": EVERYONE,
    "GET /health": STAFF,
    "GET /metrics": STAFF,
    "GET /api/v1/workflows": ANY_CREDENTIAL,
    "GET /api/v1/workflows/{workflow_id}": ANY_CREDENTIAL,
    "GET /api/v1/workflows-schema": ANY_CREDENTIAL,
    "POST /api/platform/submit": only(SUBMITTER, OPERATOR, limited=True),
    "POST /api/platform/inspect": only(SUBMITTER, OPERATOR, limited=True),
    "GET /api/platform/status/{identifier}": ANY_CREDENTIAL,
    "POST /api/platform/retry": only(SUBMITTER, OPERATOR, limited=True),
    "POST /api/platform/approve": only(REVIEWER),
    "POST /api/platform/reject": only(REVIEWER),
    "POST /api/platform/revoke": only(REVIEWER),
    "POST /api/platform/unpublish": only(REVIEWER, OPERATOR),
    "POST /api/platform/rollback": only(REVIEWER),
    "POST /api/platform/export/retry": only(REVIEWER, OPERATOR),
    "OPTIONS /api/platform/uploads": EVERYONE,
    "POST /api/platform/uploads": only(SUBMITTER, OPERATOR, limited=True),
    "POST /api/platform/uploads/from-url": only(SUBMITTER, OPERATOR, limited=True),
    "GET /api/platform/uploads": only(SUBMITTER, OPERATOR),
    "GET /api/platform/uploads/{upload_id}": only(SUBMITTER, OPERATOR),
    "PATCH /api/platform/uploads/{upload_id}": only(SUBMITTER, OPERATOR, limited=True),
    "DELETE /api/platform/uploads/{upload_id}": only(SUBMITTER, OPERATOR),
    "GET /api/platforms": ANY_CREDENTIAL,
    "GET /api/platforms/{platform_id}": ANY_CREDENTIAL,
    "POST /api/platforms": only(ADMIN),
    "PUT /api/platforms/{platform_id}": only(ADMIN),
    "GET /api/assets": ANY_CREDENTIAL,
    "GET /api/assets/decisions": STAFF,
    "GET /api/assets/{asset_id}": ANY_CREDENTIAL,
    "GET /api/assets/{asset_id}/links": ANY_CREDENTIAL,
    "GET /api/assets/{asset_id}/styles": ANY_CREDENTIAL,
    "GET /api/assets/{asset_id}/styles/{name}": ANY_CREDENTIAL,
    "PUT /api/assets/{asset_id}/styles/{name}": only(SUBMITTER, REVIEWER, OPERATOR),
    "DELETE /api/assets/{asset_id}/styles/{name}": only(SUBMITTER, REVIEWER, OPERATOR),
    "GET /api/assets/reports/{report}": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/counts": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/histogram": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/stream": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/difference": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/logs": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/logs/stream": only(READER, REVIEWER, OPERATOR),
    "GET /api/assets/review/stream": only(REVIEWER),
    "GET /api/v1/instances/stream": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/nodes/{node_id}": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/nodes/{node_id}/items": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/nodes/{node_id}/items/summary": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/nodes/{node_id}/items/{index}": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/events": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/{job_id}/stream": only(READER, REVIEWER, OPERATOR),
    "POST /api/v1/jobs": only(OPERATOR, limited=True),
    "POST /api/v1/jobs/{job_id}/cancel": only(OPERATOR),
    "POST /api/v1/jobs/{job_id}/pause": only(OPERATOR),
    "POST /api/v1/jobs/{job_id}/resume": only(OPERATOR),
    "POST /api/v1/jobs/{job_id}/retry": only(OPERATOR, limited=True),
    "POST /api/v1/jobs/{job_id}/release": only(OPERATOR),
    "POST /api/jobs/submit/{job_type}": only(OPERATOR, limited=True),
    "GET /api/jobs": only(READER, REVIEWER, OPERATOR),
    "GET /api/jobs/types": ANY_CREDENTIAL,
    "GET /api/jobs/status/{job_id}": only(READER, REVIEWER, OPERATOR),
    "GET /api/jobs/status/{job_id}/tasks": only(READER, REVIEWER, OPERATOR),
    "POST /platform/submit_dag": only(SUBMITTER, OPERATOR, limited=True),
    "GET /platform/dag_status/{identifier}": ANY_CREDENTIAL,
    "GET /api/jobs/tasks/{task_id}": only(READER, REVIEWER, OPERATOR),
    "GET /api/v1/jobs/parked": STAFF,
    "GET /api/v1/stream": STAFF,
    "GET /api/v1/jobs/{job_id}/callback": only(SUBMITTER, READER, REVIEWER, OPERATOR),
    "GET /api/v1/callbacks": only(SUBMITTER, READER, REVIEWER, OPERATOR),
    "POST /api/v1/callbacks/{job_id}/send": only(SUBMITTER, OPERATOR, limited=True),
    "GET /api/v1/queues": STAFF,
    "GET /api/v1/queues/{queue}": STAFF,
    "GET /api/v1/queues/{queue}/messages": STAFF,
    "GET /api/v1/queues/{queue}/messages/{message_id}": STAFF,
    "GET /api/v1/dead-letters": STAFF,
    "GET /api/v1/dead-letters/{message_id}": STAFF,
    "POST /api/v1/dead-letters/redrive": only(OPERATOR),
    "POST /api/v1/dead-letters/discard": only(OPERATOR),
    "GET /api/v1/schedules": STAFF,
    "POST /api/v1/schedules": only(OPERATOR),
    "GET /api/v1/schedules/{schedule_id}": STAFF,
    "PATCH /api/v1/schedules/{schedule_id}": only(OPERATOR),
    "DELETE /api/v1/schedules/{schedule_id}": only(OPERATOR),
    "POST /api/v1/schedules/{schedule_id}/run": only(OPERATOR, limited=True),
    "GET /api/v1/schedules/{schedule_id}/jobs": STAFF,
    "GET /api/v1/handlers": STAFF,
    "GET /api/v1/handlers/{name}": STAFF,
    "GET /api/v1/instances": STAFF,
    "GET /api/v1/circuits": STAFF,
    "POST /api/v1/circuits/{handler}/close": only(OPERATOR),
    "POST /api/v1/workflows/validate": only(READER, REVIEWER, OPERATOR, limited=True),
    "GET /api/v1/workflows/{workflow_id}/versions": STAFF,
    "GET /api/v1/workflows/{workflow_id}/source": STAFF,
    "GET /api/v1/workflows/{workflow_id}/difference": STAFF,
    "GET /api/v1/storage": STAFF,
    "GET /api/v1/storage/assets": STAFF,
    "GET /api/v1/storage/cleanup": STAFF,
    "POST /api/v1/keys": only(ADMIN),
    "GET /api/v1/keys": only(ADMIN),
    "GET /api/v1/keys/{key_id}": only(ADMIN),
    "DELETE /api/v1/keys/{key_id}": only(ADMIN),
    "GET /api/v1/settings": only(ADMIN),
    "GET /api/v1/audit": only(OPERATOR),
    "PATCH /api/platforms/{platform_id}": only(ADMIN),
    "GET /api/v1/bootstrap/ddl": only(OPERATOR),
    "POST /api/v1/bootstrap/migrate": only(ADMIN),
}


def mounted(prefixes: Iterable[str]) -> dict[str, Who]:
    """Return the rules of mounted services. A service checks by itself what a caller may see."""
    return {f"ANY {prefix}": EVERYONE_BY_SIGHT for prefix in prefixes}


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may pass: its rule and its principal, which is None if the route needs no credential. `token` is
    that of the console session, if the caller has shown one instead of a key."""

    rule: str
    principal: Principal | None
    token: SessionToken | None = None


class AccessRules:
    """Finds the rule of a request. A literal path wins over one with a parameter, which wins over the prefix of a
    mounted service."""

    def __init__(self, rules: Mapping[str, Who]) -> None:
        self._rules = rules
        self._patterns: list[tuple[str, re.Pattern[str], str]] = []
        self._prefixes: list[tuple[str, str]] = []
        for rule in rules:
            method, _, path = rule.partition(" ")
            if method == "ANY":
                self._prefixes.append((f"{path}/", rule))
            elif "{" in path:
                self._patterns.append((method, compile_path(path)[0], rule))

    def find(self, method: str, path: str) -> tuple[str, Who] | None:
        method = "GET" if method == "HEAD" else method
        rule = f"{method} {path}"
        if rule not in self._rules or "{" in rule:
            matching = (name for verb, pattern, name in self._patterns if verb == method and pattern.match(path))
            rule = next(matching, "") or next((name for start, name in self._prefixes if path.startswith(start)), "")
        return (rule, self._rules[rule]) if rule else None


def require_complete(app: FastAPI, rules: Mapping[str, Who]) -> None:
    """Raise if a route has no rule or a rule has no route."""
    routes = set(_routes(app))
    if lacking := sorted(routes - set(rules)):
        raise RuntimeError(f"no rule says who may call {', '.join(lacking)}: add a line to api/access.py")
    if idle := sorted(set(rules) - routes):
        raise RuntimeError(f"no route exists for the rule {', '.join(idle)}: remove it from api/access.py")


def _routes(app: FastAPI) -> Iterable[str]:
    for context in iter_route_contexts(app.routes):
        for method in context.methods or {"ANY"}:
            if method != "HEAD":
                yield f"{method} {context.path}"


def admission(scope: Scope) -> Admission | None:
    """Return the admission that the guard wrote into the scope, or None if the request did not pass it."""
    admitted: Admission | None = scope.get("geomill.admission")
    return admitted


def admit(scope: Scope, admitted: Admission) -> None:
    scope["geomill.admission"] = admitted


async def confirmed(request: Request) -> None:
    """Refuse a request whose route is not the one the guard admitted."""
    admitted = admission(request.scope)
    method = "GET" if request.method == "HEAD" else request.method
    if admitted is None or admitted.rule != f"{method} {request.scope['route'].path}":
        raise Forbidden("no access rule admits this request")


async def principal_of(request: Request) -> Principal:
    admitted = admission(request.scope)
    if admitted is None or admitted.principal is None:
        raise Forbidden("this operation needs a caller, but the route requires no credential")
    return admitted.principal


async def admission_of(request: Request) -> Admission:
    admitted = admission(request.scope)
    assert admitted is not None  # `confirmed` has refused the request otherwise
    return admitted


TheAdmission = Annotated[Admission, Depends(admission_of)]
"""The admission of the request, whose principal may be None."""
ThePrincipal = Annotated[Principal, Depends(principal_of)]
"""The caller, on routes that require a credential."""


def describe(
    document: dict[str, Any], rules: Mapping[str, Who], refusals: Callable[..., Mapping[int | str, Any]]
) -> None:
    """Add the rules to an OpenAPI document: the security schemes, what each route requires, and the responses of the
    guard."""
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a token of the OIDC issuer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key"},
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            who = rules[f"{method.upper()} {path}"]
            operation["security"] = [] if who.roles is None else [{"bearer": []}, {"key": []}]
            if who.roles is not None:
                operation["x-roles"] = sorted({*who.roles, Role.ADMIN}) if who.roles else sorted(Role)
            statuses = _refused_with(who, has_body="requestBody" in operation)
            operation["responses"].update({str(status): response for status, response in refusals(*statuses).items()})


def _refused_with(who: Who, *, has_body: bool) -> list[int]:
    body = [400, 413] if has_body else []
    credential = [401, 403] if who.roles is not None else []
    return body + credential + ([429] if who.limited else [])
