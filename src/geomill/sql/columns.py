"""Column lists in the files of statements, written from the models.

`{columns of dagapp.dag_jobs}` becomes the names of all columns of the table, `{columns of dagapp.dag_jobs as j}` the
same with an alias. A statement that needs some of the columns, often several times, uses a list that the file defines
once. Such a definition is a comment:

    -- columns: new_job of dagapp.dag_jobs: job_id, workflow_id, status
    -- columns: new_request of app.platform_requests without status, retry_count

A definition goes on in the next line, if that begins with `--   `. `{columns of new_job}` becomes the names,
`{values of new_job}` the parameters of these names, and `{record of new_job}` the names with their types, for
`json_to_recordset`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from geomill.domain.entity import Entity

_LIST = re.compile(
    r"^-- columns: (?P<name>\w+) of (?P<table>\w+\.\w+)(?P<kind>:| without) (?P<columns>.+(?:\n--   .+)*)$",
    re.MULTILINE,
)
_PLACEHOLDER = re.compile(r"\{(?P<form>columns|values|record) of (?P<name>[\w.]+)(?: as (?P<alias>\w+))?\}")


class ColumnList(NamedTuple):
    model: type[Entity]
    names: tuple[str, ...]


def column_lists(noun: str, text: str) -> dict[str, ColumnList]:
    """Returns the lists that the text of a file defines, by name."""
    lists: dict[str, ColumnList] = {}
    for definition in _LIST.finditer(text):
        model = _model(noun, definition["table"])
        listed = tuple(definition["columns"].replace("\n--   ", " ").replace(" ", "").split(","))
        if unknown := [name for name in listed if name not in model.model_fields]:
            raise ValueError(f"{noun}.sql: {definition['table']} has no column '{unknown[0]}'")
        if definition["name"] in lists or len(set(listed)) < len(listed):
            raise ValueError(f"{noun}.sql: the column list '{definition['name']}' is there twice or repeats a column")
        names = (
            listed if definition["kind"] == ":" else tuple(name for name in model.model_fields if name not in listed)
        )
        lists[definition["name"]] = ColumnList(model, names)
    return lists


def with_columns(noun: str, statement: str, lists: Mapping[str, ColumnList]) -> str:
    """Returns the statement with column lists in the place of `{columns of …}` and the like."""

    def written(placeholder: re.Match[str]) -> str:
        columns = lists.get(placeholder["name"]) or _all_columns(noun, placeholder["name"])
        if placeholder["form"] == "values":
            return ", ".join(f"%({name})s" for name in columns.names)
        if placeholder["form"] == "record":
            return ", ".join(f"{name} {_type(columns.model, name)}" for name in columns.names)
        prefix = f"{placeholder['alias']}." if placeholder["alias"] else ""
        return ", ".join(prefix + name for name in columns.names)

    return _PLACEHOLDER.sub(written, statement)


def _all_columns(noun: str, table: str) -> ColumnList:
    model = _model(noun, table)
    return ColumnList(model, tuple(model.model_fields))


def _type(model: type[Entity], name: str) -> str:
    """Returns the type of a column in a record. A text of limited length is a text there."""
    from geomill.sql.column_types import column_type, dissect

    field = model.model_fields[name]
    facet = dissect(field.annotation, tuple(field.metadata))
    return re.sub(r"varchar\(\d+\)", "text", column_type(name, facet, model.__sql_schema__))


def _model(noun: str, table: str) -> type[Entity]:
    if table not in _models():
        raise ValueError(f"{noun}.sql: there is no table '{table}' whose columns could be named")
    return _models()[table]


@cache
def _models() -> dict[str, type[Entity]]:
    """Returns the model of each table. The models are imported only for files that name their tables."""
    from geomill.domain.tables import EXTERNAL_TABLES, TABLES

    return {f"{model.__sql_schema__}.{model.__sql_table__}": model for model in (*TABLES, *EXTERNAL_TABLES)}
