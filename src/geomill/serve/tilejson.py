"""Completes the TileJSON documents of TiTiler and TiPG with title, description and attribution of the data."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute

from geomill.domain.assets.metadata import DatasetMetadata

Describe = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Returns the fields for a document from the parameters of its route."""


def tilejson_fields(title: str, metadata: DatasetMetadata) -> dict[str, Any]:
    """Return the fields. Maps show the attribution as HTML, so it is escaped."""
    fields = {"name": title, "description": metadata.description}
    if metadata.attribution:
        fields["attribution"] = html.escape(metadata.attribution)
    return {name: value for name, value in fields.items() if value is not None}


def complete_tilejson(router: APIRouter, describe: Describe) -> None:
    """Replace the routes of TileJSON documents by routes that add fields."""
    for index, route in enumerate(router.routes):
        if isinstance(route, APIRoute) and route.path.endswith("/tilejson.json"):
            router.routes[index] = _completed(route, describe)


def _completed(route: APIRoute, describe: Describe) -> APIRoute:
    function = route.endpoint

    @wraps(function)
    def at_once(*args: Any, **parameters: Any) -> Any:
        return _with_fields(function(*args, **parameters), describe(parameters))

    @wraps(function)
    async def awaited(*args: Any, **parameters: Any) -> Any:
        return _with_fields(await function(*args, **parameters), describe(parameters))

    return APIRoute(
        route.path,
        awaited if inspect.iscoroutinefunction(function) else at_once,
        response_model=route.response_model,
        response_model_exclude_none=True,
        responses=route.responses,
        operation_id=route.operation_id,
        name=route.name,
        tags=route.tags,
        methods=route.methods,
        dependencies=route.dependencies,
        response_class=route.response_class,
    )


def _with_fields(document: Any, fields: dict[str, Any]) -> Any:
    return {**document, **fields} if isinstance(document, dict) else document.model_copy(update=fields)
