"""The placeholders of SQL files, which are filled from the models when a file is read.

`{columns of dagapp.dag_jobs}` and `{columns of dagapp.dag_jobs as j}` are the columns of the model, by name.
`{new columns of dagapp.dag_jobs}` are those that an INSERT gives: the fields of the model's `__sql_new__`.
`{new values of app.platform_requests}` are the parameters of these columns: `%(request_id)s, …`.
`{served asset as a}` and `{seen revision of asset as a}` are the rule of who sees what (`domain/access/visibility.py`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geomill.domain.entity import Entity

_PLACEHOLDER = re.compile(r"\{(?P<kind>columns|new columns|new values) of (?P<table>\w+\.\w+)(?: as (?P<alias>\w+))?\}")
_RULE = re.compile(r"\{(?P<rule>served|seen revision of) asset as (?P<alias>\w+)\}")


def fill(noun: str, statement: str) -> str:
    """The statement with its placeholders filled. Raises `ValueError` for a table that no model describes."""

    def text_of(placeholder: re.Match[str]) -> str:
        kind, table = placeholder["kind"], placeholder["table"]
        if table not in _models():
            raise ValueError(f"{noun}.sql: there is no table '{table}' whose columns could be named")
        names = _names(_models()[table], new=kind != "columns")
        if not names:
            raise ValueError(f"{noun}.sql: the model of '{table}' does not say which columns a new row is given")
        if kind == "new values":
            return ", ".join(f"%({name})s" for name in names)
        prefix = f"{placeholder['alias']}." if placeholder["alias"] else ""
        return ", ".join(prefix + name for name in names)

    return _RULE.sub(_rule, _PLACEHOLDER.sub(text_of, statement))


def _rule(placeholder: re.Match[str]) -> str:
    from geomill.domain.access.visibility import SEEN_REVISION_SQL, SERVED_SQL

    text = SERVED_SQL if placeholder["rule"] == "served" else SEEN_REVISION_SQL
    return text.replace("{asset}", placeholder["alias"])


def _names(model: type[Entity], *, new: bool) -> tuple[str, ...]:
    if not new:
        return tuple(model.model_fields)
    return tuple(model.__sql_new__.model_fields) if model.__sql_new__ else ()


@cache
def _models() -> dict[str, type[Entity]]:
    """The model of each table. The models are imported only for files that name them."""
    from geomill.domain.tables import EXTERNAL_TABLES, TABLES

    return {f"{model.__sql_schema__}.{model.__sql_table__}": model for model in (*TABLES, *EXTERNAL_TABLES)}
