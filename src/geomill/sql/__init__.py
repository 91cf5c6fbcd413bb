"""The SQL of the project: plain statements in `queries/<noun>.sql`, each under a line `-- name: claim_messages`.

They ship with the code that runs them. `schema.sql` beside them is generated from the models.

A statement that returns whole rows says `{columns of dagapp.dag_jobs}`, or `{columns of dagapp.dag_jobs as j}`, where
others say `*`: the columns of the model, by name. A column that a newer release adds then changes nothing for a process
that runs. With `*` it would change the result, and PostgreSQL refuses to go on with a prepared plan that does.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

_NAME = re.compile(r"^--[ ]*name:[ ]*(\w+)[ ]*$", re.MULTILINE)
_COLUMNS = re.compile(r"\{columns of (?P<table>\w+\.\w+)(?: as (?P<alias>\w+))?\}")


class Queries:
    """The statements of one file, as attributes: `queries("jobs").claim`."""

    def __init__(self, noun: str, text: str) -> None:
        preamble, *parts = _NAME.split(text)
        if any(line.strip() and not line.startswith("--") for line in preamble.splitlines()):
            raise ValueError(f"{noun}.sql: a statement stands before the first '-- name:' line")
        self._noun = noun
        self._statements: dict[str, str] = {}
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            if name in self._statements or not statement.strip():
                raise ValueError(f"{noun}.sql: '{name}' is empty or there twice")
            self._statements[name] = _COLUMNS.sub(self._column_list, _without_comments(statement))

    def _column_list(self, placeholder: re.Match[str]) -> str:
        table, prefix = placeholder["table"], f"{placeholder['alias']}." if placeholder["alias"] else ""
        if table not in _columns():
            raise ValueError(f"{self._noun}.sql: there is no table '{table}' whose columns could be named")
        return ", ".join(prefix + name for name in _columns()[table])

    def __getattr__(self, name: str) -> LiteralString:
        if name.startswith("_") or name not in self._statements:
            raise AttributeError(f"{self._noun}.sql has no statement '{name}'")
        return self._statements[name]

    def __dir__(self) -> list[str]:
        return sorted(self._statements)


def _without_comments(statement: str) -> str:
    """They are for those who read the file. Psycopg analyses statements above 4,096 bytes again at each use."""
    return "\n".join(line for line in statement.splitlines() if not line.lstrip().startswith("--")).strip()


@cache
def _columns() -> dict[str, tuple[str, ...]]:
    """The columns of each table. The models are imported only for files that name them."""
    from geomill.domain.tables import EXTERNAL_TABLES, TABLES

    models = (*TABLES, *EXTERNAL_TABLES)
    return {f"{model.__sql_schema__}.{model.__sql_table__}": tuple(model.model_fields) for model in models}


@cache
def queries(noun: str) -> Queries:
    return Queries(noun, files(__name__).joinpath("queries", f"{noun}.sql").read_text(encoding="utf-8"))


@cache
def function_sql(name: str) -> str:
    """The definition of a database function: `function_sql("app.follow_job")` is `functions/follow_job.sql`."""
    text = files(__name__).joinpath("functions", f"{name.rpartition('.')[2]}.sql").read_text(encoding="utf-8")
    return text.strip().removesuffix(";")


@cache
def schema_sql() -> str:
    """The whole schema as committed."""
    return files(__name__).joinpath("schema.sql").read_text(encoding="utf-8")


@cache
def step_files() -> dict[str, str]:
    """Numbered steps of the migration: the text of each file by its name, in their order."""
    folder = files(__name__).joinpath("steps")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
