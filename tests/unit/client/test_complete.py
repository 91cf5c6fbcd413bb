"""The client has every operation of the HTTP API, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from geomill.api.access import RULES
from geomill.client import asynchronous

VERBS = {"get": "GET", "post": "POST", "patch": "PATCH", "put": "PUT", "delete": "DELETE", "follow": "GET"}
WITHOUT = {
    "GET /openapi.json": "for generators",
    "GET /docs": "for people",
    "GET /docs/{}": "for people",
    "GET /": "for people",
    "GET /console": "for people",
    "GET /console/{path:path}": "for people",
    "POST /api/v1/session": "for browsers",
    "DELETE /api/v1/session": "for browsers",
    "POST /api/v1/session/renewal": "for browsers",
    "GET /api/v1/session/oidc": "for browsers",
    "GET /api/v1/session/oidc/return": "for browsers",
    "GET /api/v1/stream": "for browsers: programs follow each stream by itself",
    "GET /metrics": "for Prometheus",
    "GET /health/ready": "for balancers",
    "POST /platform/submit_dag": "another name of POST /api/platform/submit",
    "GET /platform/dag_status/{}": "another name of GET /api/platform/status/{}",
    "PUT /api/platforms/{}": "PATCH does the same with less",
    "OPTIONS /api/platform/uploads": "for other clients of tus",
}
"""Routes that the client does not call, each with the reason."""


def calls() -> Iterator[str]:
    """The requests in the source of the client: `GET /api/v1/jobs/{}`."""
    for file in Path(asynchronous.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield from _requests(node.func.attr, node)


def _requests(name: str, call: ast.Call) -> Iterator[str]:
    texts = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    templates = [argument.args[0] for argument in call.args if isinstance(argument, ast.Call) and argument.args]
    texts += [template.value for template in templates if isinstance(template, ast.Constant)]
    paths = [text for text in texts if isinstance(text, str) and text.startswith("/")]
    if name in VERBS:
        yield from (f"{VERBS[name]} {path}" for path in paths)
    elif name in ("send", "transmit"):
        yield from (f"{texts[0]} {path}" for path in paths)
    elif name == "_decide" and texts:
        yield f"POST /api/platform/{texts[0]}"


def routes() -> set[str]:
    return {re.sub(r"{\w+}", "{}", rule) for rule in RULES}


def test_every_route_has_an_operation_or_a_reason() -> None:
    assert sorted(routes() - set(calls()) - set(WITHOUT)) == []
    assert set(WITHOUT) <= routes()
    assert not set(WITHOUT) & set(calls())


def test_every_operation_calls_a_route() -> None:
    assert sorted(set(calls()) - routes()) == []
