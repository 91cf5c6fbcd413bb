"""Restores lost objects of pgstac from the file that installed it.

Functions, triggers and indexes are created anew, which loses nothing. A lost table, column or constraint cannot be
restored, because its rows are gone or it would have to be altered. Then the operator reinstalls pgstac, and geomill
rebuilds the catalogue from the assets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

from geomill.sql import queries
from geomill.store.diff import Change, Effect
from geomill.store.quoting import identifier
from geomill.store.schema_objects import Objects, sentence

GEOMILL_INDEX = "index geomill_public on pgstac.items"
_AS_PGSTAC = "SET ROLE pgstac_admin; SET search_path TO pgstac, public;"
_AFTERWARDS = "RESET ROLE; RESET search_path;"
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|(\$\w*\$).*?\1|;", re.DOTALL)


def changes(version: str | None, names: Sequence[str], live: Objects) -> tuple[Change, ...]:
    """Return the repairs. `names` are the missing or changed objects, `live` all objects, `version` the installed
    release."""
    source = _statements(version) if version else []
    repairs = {name: list(_repair(name, source)) for name in names}
    if unrepairable := [name for name, repair in repairs.items() if not repair]:
        more = f" and {len(unrepairable) - 1} more" if len(unrepairable) > 1 else ""
        return (_reinstall(f"{sentence(unrepairable[0], live)}{more}"),)
    return tuple(_change(name, repair) for name, repair in repairs.items())


def _reinstall(reason: str) -> Change:
    statements = (
        "DROP SCHEMA pgstac CASCADE",
        "-- then run 'geomill db migrate', and 'geomill catalogue rebuild' to restore it from the assets",
    )
    return Change(f"install pgstac anew, as {reason}", statements, Effect.DESTRUCTIVE)


def _change(name: str, repair: list[str]) -> Change:
    script = ";\n".join(repair) + ";" if name == GEOMILL_INDEX else _script(repair)
    return Change(f"put back the {name}", (f"-- the {name} from the package pypgstac",), script=script)


def _script(repair: list[str]) -> str:
    return f"{_AS_PGSTAC}\n" + ";\n".join(repair) + f";\n{_AFTERWARDS}"


def _repair(name: str, source: list[str]) -> Iterator[str]:
    """Yield the statements that create the object. Yields nothing if the file has none."""
    kind, _, rest = name.partition(" ")
    bare, _, table = rest.partition(" on ")
    if name == GEOMILL_INDEX:
        yield "DROP INDEX IF EXISTS pgstac.geomill_public"
        yield queries("migration").index_pgstac.rstrip().removesuffix(";")
    elif kind == "function":
        routine = re.escape(rest.partition("(")[0].removeprefix("pgstac."))
        yield from _matching(
            source, rf"CREATE (OR REPLACE )?(FUNCTION|PROCEDURE|AGGREGATE) {routine}\b|ALTER FUNCTION {routine}\b"
        )
    elif kind in ("trigger", "index"):
        pattern = rf"CREATE (UNIQUE |OR REPLACE )?{kind} (IF NOT EXISTS )?\"?{re.escape(bare)}\"?\s"
        if creation := list(_matching(source, pattern)):
            place = f" ON {table}" if kind == "trigger" else ""
            prefix = "pgstac." if kind == "index" else ""
            yield f"DROP {kind.upper()} IF EXISTS {prefix}{identifier(bare)}{place}"
            yield creation[-1]


def _matching(source: list[str], pattern: str) -> Iterator[str]:
    beginning = re.compile(pattern, re.IGNORECASE)
    return (statement for statement in source if beginning.match(statement))


def _statements(version: str) -> list[str]:
    """Return the statements of the file that installs this release. Empty if pypgstac does not have it."""
    file = files("pypgstac").joinpath("migrations", f"pgstac.{version}.sql")
    if not file.is_file():
        return []
    text, begun, statements = file.read_text(encoding="utf-8"), 0, []
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            statements.append(_without_comments(text[begun : token.start()]))
            begun = token.end()
    return statements


def _without_comments(statement: str) -> str:
    return re.sub(r"\A(\s|--[^\n]*\n|/\*.*?\*/)*", "", statement, flags=re.DOTALL)
