"""Translates every error into an RFC 9457 problem document, by one table."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AliasChoices, BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from geomill.api.access import admission
from geomill.errors import (
    ChecksumMismatch,
    ConflictError,
    DestructiveMigration,
    Forbidden,
    GeomillError,
    InputError,
    NotFoundError,
    Problem,
    StorageFull,
    TooManyRequests,
    Unauthenticated,
    UnavailableError,
    UnknownReferenceSystem,
    UploadGone,
    UploadLocked,
    UploadTooLarge,
    nearest,
)
from geomill.remedies import Channel, worded
from geomill.store.passing import passes
from geomill.store.replanning import has_changed_plan

log = logging.getLogger(__name__)

REPEATED = "geomill.repeated"
"""Scope key of a request that is on its second attempt."""
MEDIA_TYPE = "application/problem+json"
STATUSES: tuple[tuple[type[GeomillError], int], ...] = (
    (UploadGone, 410),
    (NotFoundError, 404),
    (UploadTooLarge, 413),
    (ChecksumMismatch, 460),
    (UnknownReferenceSystem, 400),
    (InputError, 422),
    (UploadLocked, 423),
    (ConflictError, 409),
    (Unauthenticated, 401),
    (Forbidden, 403),
    (TooManyRequests, 429),
    (StorageFull, 507),
    (UnavailableError, 503),
)
CODES = {
    400: "malformed_request",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    412: "wrong_version",
    413: "too_large",
    415: "wrong_content_type",
    421: "wrong_host",
}
"""Codes of errors that HTTP itself defines."""

CHALLENGE = 'Bearer realm="geomill"'
BODY_HINT = "send a JSON object with the header Content-Type: application/json"


class FieldProblem(BaseModel):
    """One error in a request."""

    field: str = Field(description="The field of the body, the parameter or the input", examples=["count"])
    message: str = Field(examples=["must be at most 50, not 51"])
    hint: str = ""


class ProblemDocument(BaseModel):
    """A problem document (RFC 9457). `code` is stable; the wording is not."""

    type: str = Field(examples=["urn:geomill:problem:invalid_inputs"])
    title: str = Field(examples=["Invalid inputs"])
    status: int = Field(examples=[422])
    detail: str
    instance: str = Field(description="The path of the request", examples=["/api/v1/jobs"])
    code: str = Field(examples=["invalid_inputs"])
    errors: list[FieldProblem] = []
    statements: list[str] = Field(default=[], description="The SQL of a migration that was refused")


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses for the OpenAPI description of a route."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def component_schemas() -> dict[str, Any]:
    """Return the schemas that `problem_responses` refers to."""
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "ProblemDocument": schema}


def install(app: FastAPI) -> None:
    handlers: tuple[tuple[type[Exception], Any], ...] = (
        (GeomillError, _domain),
        (RequestValidationError, _validation),
        (HTTPException, _http),
        (psycopg.Error, _domain),
        (Exception, _unknown),
    )
    for error, handler in handlers:
        app.add_exception_handler(error, handler)


def status_of(error: GeomillError) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def respond(
    path: str,
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldProblem] = (),
    statements: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    document = ProblemDocument(
        type=f"urn:geomill:problem:{code}",
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=_printable(worded(detail, Channel.HTTP)),
        instance=_printable(path),
        code=code,
        errors=list(errors),
        statements=list(statements),
    )
    content = document.model_dump(exclude_defaults=True)
    return JSONResponse(content, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def respond_to(
    path: str, error: GeomillError | psycopg.Error, subject: str | None = None, *, status: int | None = None
) -> JSONResponse:
    """Return the response to an error. `subject` is the caller, for the log. `status` overrides the table."""
    extra = {"action": "request", "path": path, "subject": subject}
    if isinstance(error, psycopg.Error):
        return _respond_for_database(path, error, extra)
    status = status or status_of(error)
    if status == 500:
        log.error("a request failed", exc_info=error, extra=extra)
        return _internal(path)
    problems = error.problems if isinstance(error, InputError) else ()
    statements = error.statements if isinstance(error, DestructiveMigration) else ()
    return respond(
        path,
        status,
        error.code,
        str(error),
        errors=[_from_problem(problem) for problem in problems],
        statements=statements,
        headers=_headers(error, status),
    )


def _respond_for_database(path: str, error: psycopg.Error, extra: dict[str, Any]) -> JSONResponse:
    if not passes(error):
        log.error("a request failed", exc_info=error, extra=extra)
        return _internal(path)
    log.warning("the database was not available for a request: %s", error, extra=extra)
    read_only = isinstance(error, psycopg.errors.ReadOnlySqlTransaction)
    trouble = "accepts no changes at present" if read_only else "does not answer"
    detail = f"the database {trouble}; try again in a moment"
    return respond(path, 503, "database_unreachable", detail, headers={"Retry-After": "5"})


def _headers(error: GeomillError, status: int) -> dict[str, str] | None:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": CHALLENGE}
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(math.ceil(error.retry_after))}
    return {"Retry-After": "5"} if status == 503 else None


async def _domain(request: Request, error: GeomillError | psycopg.Error) -> JSONResponse:
    if has_changed_plan(error) and REPEATED not in request.scope:
        raise error  # `api/replanning.py` repeats the request
    admitted = admission(request.scope)
    subject = admitted.principal.subject if admitted and admitted.principal else None
    return respond_to(request.url.path, error, subject)


async def _validation(request: Request, error: RequestValidationError) -> JSONResponse:
    errors = error.errors()
    if any(field_error["type"] == "json_invalid" for field_error in errors):
        reason = errors[0].get("ctx", {}).get("error", "")
        detail = f"the body is not JSON: {reason} at character {errors[0]['loc'][-1]}"
        return respond(request.url.path, 400, CODES[400], detail)
    field_names = tuple(map(str, _fields(request)))
    problems = [_from_validation(field_error, field_names) for field_error in errors]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    first = problems[0]
    where = f"{first.field}: " if first.field else ""
    detail = f"the request is wrong: {where}{first.message}{more}"
    return respond(request.url.path, 422, InputError.code, detail, errors=problems)


async def _http(request: Request, error: HTTPException) -> JSONResponse:
    code = CODES.get(error.status_code, "http_error")
    detail = str(error.detail)
    if error.status_code == 404 and detail == "Not Found":
        detail = f"{request.url.path} does not exist; /docs lists the routes"
    if error.status_code == 405:
        detail = f"{request.method} is not allowed here; use {Headers(error.headers).get('allow', '')}"
    return respond(request.url.path, error.status_code, code, detail, headers=error.headers)


async def _unknown(request: Request, error: Exception) -> JSONResponse:
    """Answer an unexpected error. The server logs its stack; the client learns no internals."""
    del error
    return _internal(request.url.path)


def _internal(path: str) -> JSONResponse:
    return respond(path, 500, GeomillError.code, "an internal error occurred; see the gateway's log")


def _from_problem(problem: Problem) -> FieldProblem:
    return FieldProblem(
        field=_printable(problem.where), message=_printable(problem.message), hint=_printable(problem.hint)
    )


def _from_validation(error: Mapping[str, Any], field_names: Sequence[str]) -> FieldProblem:
    place = ".".join(str(part) for part in error["loc"][1:])
    message, hint = str(error["msg"]).removeprefix("Value error, "), ""
    if error["type"] == "extra_forbidden":
        message, hint = "the field does not exist", nearest(str(error["loc"][-1]), field_names)
    elif error["loc"] == ("body",) and error["type"] != "value_error":
        message, hint = "the body must be a JSON object", BODY_HINT
    return FieldProblem(field=_printable(place), message=_printable(message), hint=_printable(hint))


def _fields(request: Request) -> Iterator[Any]:
    """Yield the names of the fields in the route's body and query."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    for part in (*getattr(dependant, "body_params", ()), *getattr(dependant, "query_params", ())):
        for name, field in getattr(part.field_info.annotation, "model_fields", {}).items():
            alias = field.validation_alias
            yield from alias.choices if isinstance(alias, AliasChoices) else (name,)


def _printable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
