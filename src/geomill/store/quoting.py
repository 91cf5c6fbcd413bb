"""Identifiers and literals in generated DDL."""

from __future__ import annotations

import re

from geomill.domain.reserved import RESERVED

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_LONGEST = 63


def identifier(name: str) -> str:
    """Return the name as SQL, in quotes only if it needs them."""
    if not name or "\0" in name or len(name.encode()) > _LONGEST:
        raise ValueError(f"'{name}' cannot name anything in PostgreSQL: it takes 1 to {_LONGEST} bytes")
    if _PLAIN.fullmatch(name) and name not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    return f"{identifier(schema)}.{identifier(name)}"


def column_list(names: tuple[str, ...]) -> str:
    return ", ".join(map(identifier, names))


def literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"
