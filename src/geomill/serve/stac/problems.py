"""Errors of the STAC API as problem documents.

Database errors about a caller's condition are not passed on, because they may quote data that the caller must not see.
"""

from __future__ import annotations

import logging
from typing import Any

import asyncpg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from stac_fastapi.types import errors

from geomill.api import problems
from geomill.errors import DatabaseUnreachable, GeomillError, InputError, NotFoundError

log = logging.getLogger(__name__)

NOT_FIT = "the search does not fit the data: it compares incompatible values, or a value has the wrong type"
TOO_LONG = "the search took too long; narrow it or use a smaller limit"


def install(app: FastAPI) -> None:
    problems.install(app)
    handlers: tuple[tuple[type[Exception], Any], ...] = (
        (errors.NotFoundError, _not_found),
        (errors.InvalidQueryParameter, _invalid),
        (RequestValidationError, _validation),
        (InputError, _input),
        (asyncpg.RaiseError, _refused),
        (asyncpg.DataError, _unfit),
        (asyncpg.UndefinedFunctionError, _unfit),
        (asyncpg.DatatypeMismatchError, _unfit),
        (asyncpg.CannotCoerceError, _unfit),
        (asyncpg.PostgresSyntaxError, _unfit),
        (asyncpg.AmbiguousFunctionError, _unfit),
        (asyncpg.IndeterminateDatatypeError, _unfit),
        (asyncpg.StatementTooComplexError, _unfit),
        (asyncpg.InternalServerError, _unfit),  # from PostGIS, about the caller's geometry
        (asyncpg.QueryCanceledError, _too_long),
        (asyncpg.PostgresConnectionError, _away),
        (asyncpg.OperatorInterventionError, _away),
        (asyncpg.InterfaceError, _away),
        (asyncpg.InternalClientError, _away),  # a session that ended while it was returned to the pool
        (asyncpg.CannotConnectNowError, _away),
        (asyncpg.TooManyConnectionsError, _away),
        (OSError, _away),
        (errors.StacApiError, _internal),
    )
    for error, handler in handlers:
        app.add_exception_handler(error, handler)


def _answer(request: Request, status: int, code: str, detail: str) -> JSONResponse:
    return problems.respond(request.url.path, status, code, detail)


async def _not_found(request: Request, error: Exception) -> JSONResponse:
    return _answer(request, 404, NotFoundError.code, str(error))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    return _answer(request, 400, InputError.code, str(error))


async def _input(request: Request, error: InputError) -> JSONResponse:
    """STAC requires 400 where other services answer 422."""
    return problems.respond_to(request.url.path, error, status=400)


async def _validation(request: Request, error: RequestValidationError) -> JSONResponse:
    """STAC requires 400 where FastAPI answers 422."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return _answer(request, 400, InputError.code, f"the request is wrong: {where}: {first['msg']}")


async def _refused(request: Request, error: asyncpg.RaiseError) -> JSONResponse:
    """Pass on the message of pgstac, which refers to the search and not to data."""
    log.info("a search was refused: %s", error, extra={"action": "search"})
    return _answer(request, 400, InputError.code, f"the search is refused: {error}")


async def _unfit(request: Request, error: Exception) -> JSONResponse:
    log.info("a search failed: %s", error, extra={"action": "search"})
    return _answer(request, 400, InputError.code, NOT_FIT)


async def _too_long(request: Request, error: Exception) -> JSONResponse:
    log.warning("a search was cut off: %s", error, extra={"action": "search"})
    return _answer(request, 400, InputError.code, TOO_LONG)


async def _away(request: Request, error: Exception) -> JSONResponse:
    log.warning("the database did not answer: %s", error, extra={"action": "search"})
    detail = "the database does not answer; try again in a moment"
    return problems.respond(request.url.path, 503, DatabaseUnreachable.code, detail, headers={"Retry-After": "5"})


async def _internal(request: Request, error: Exception) -> JSONResponse:
    log.error("a request failed", exc_info=error, extra={"action": "search"})
    return _answer(request, 500, GeomillError.code, "an internal error occurred; see the server's log")
