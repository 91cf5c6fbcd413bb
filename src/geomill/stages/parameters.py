"""Validates the parameters of a job by the model of its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from geomill.domain.engine.finding import shown
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.errors import InputsError, Problem, nearest


def validated(job_type: str, model: type[BaseModel] | None, values: Any) -> dict[str, Any]:
    """Return JSON values with defaults applied, so that omitting a default and giving it are the same request."""
    if not isinstance(values, Mapping):
        raise InputsError(f"the parameters of '{job_type}' must be an object, not {shown(values)}")
    try:
        parameters = dict(values) if model is None else model.model_validate(dict(values)).model_dump(mode="json")
    except ValidationError as error:
        raise wrong(job_type, list(_problems(error, model))) from error
    return storable(job_type, parameters)


def storable(job_type: str, parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        to_json(parameters)
    except NotJson as error:
        raise InputsError(f"the parameters of '{job_type}' cannot be stored as JSON: {error}") from error
    return parameters


def wrong(job_type: str, problems: list[Problem]) -> InputsError:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InputsError(f"the parameters of '{job_type}' are wrong: {problems[0]}{more}", problems=problems)


def _problems(error: ValidationError, model: type[BaseModel] | None) -> Iterator[Problem]:
    for each in error.errors(include_url=False, include_context=False):
        where = ".".join(map(str, each["loc"]))
        fields = model.model_fields if model else {}
        if each["type"] == "extra_forbidden" and len(each["loc"]) == 1:
            yield Problem(where, f"there is no parameter '{where}'", nearest(where, fields))
        elif each["type"] == "missing":
            field = fields.get(where)
            yield Problem(where, "the parameter is missing", (field.description or "") if field else "")
        else:
            message = each["msg"].removeprefix("Value error, ")
            yield Problem(where, message[:1].lower() + message[1:], f"it is {shown(each['input'])}")


def schema_of(model: type[BaseModel] | None) -> dict[str, Any]:
    schema = model.model_json_schema(mode="validation") if model else {"type": "object"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
