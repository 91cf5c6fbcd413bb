"""Reads the SQL files of this package, each at its first use."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import ClassVar

from geomill.sql.columns import column_lists, with_columns
from geomill.sql.rules import with_rules

_PACKAGE = "geomill.sql"
_NAME = re.compile(r"^--[ ]*name:[ ]*(\w+)[ ]*$", re.MULTILINE)


class Statements:
    """The statements of one file. A subclass in `statements.py` declares one attribute for each."""

    noun: ClassVar[str]

    def __init__(self, text: str | None = None) -> None:
        statements = parse(self.noun, query_text(self.noun) if text is None else text)
        declared = type(self).__annotations__.keys()
        if statements.keys() != declared:
            names = ", ".join(sorted(statements.keys() ^ declared))
            raise ValueError(f"{self.noun}.sql and statements.py differ in: {names}; run script/schema")
        vars(self).update(statements)


def parse(noun: str, text: str) -> dict[str, str]:
    """Returns the statements of a file by name, without comments and with the column lists that they ask for."""
    preamble, *parts = _NAME.split(text)
    if any(line.strip() and not line.startswith("--") for line in preamble.splitlines()):
        raise ValueError(f"{noun}.sql: a statement stands before the first '-- name:' line")
    lists = column_lists(noun, text)
    statements: dict[str, str] = {}
    for name, statement in zip(parts[::2], parts[1::2], strict=True):
        if name in statements or not statement.strip():
            raise ValueError(f"{noun}.sql: '{name}' is empty or there twice")
        statements[name] = with_rules(with_columns(noun, _without_comments(statement), lists))
    return statements


def _without_comments(statement: str) -> str:
    """Comments are for readers of the file. Psycopg analyses statements above 4,096 bytes again at each use."""
    return "\n".join(line for line in statement.splitlines() if not line.lstrip().startswith("--")).strip()


def query_nouns() -> list[str]:
    """Returns the names of the files in `queries`, without `.sql`."""
    paths = files(_PACKAGE).joinpath("queries").iterdir()
    return sorted(path.name.removesuffix(".sql") for path in paths if path.name.endswith(".sql"))


def query_text(noun: str) -> str:
    return files(_PACKAGE).joinpath("queries", f"{noun}.sql").read_text(encoding="utf-8")


@cache
def function_sql(name: str) -> str:
    """Returns the definition of a database function: `function_sql("app.follow_job")` is `functions/follow_job.sql`."""
    text = files(_PACKAGE).joinpath("functions", f"{name.rpartition('.')[2]}.sql").read_text(encoding="utf-8")
    return text.strip().removesuffix(";")


@cache
def view_sql(name: str) -> str:
    """Returns the definition of a view: `view_sql("app.jobs")` is `views/jobs.sql`."""
    text = files(_PACKAGE).joinpath("views", f"{name.rpartition('.')[2]}.sql").read_text(encoding="utf-8")
    return text.strip().removesuffix(";")


@cache
def schema_sql() -> str:
    """Returns the whole schema as committed."""
    return files(_PACKAGE).joinpath("schema.sql").read_text(encoding="utf-8")


@cache
def step_files() -> dict[str, str]:
    """Returns the numbered steps of the migration: the text of each file by its name, in their order."""
    folder = files(_PACKAGE).joinpath("steps")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
