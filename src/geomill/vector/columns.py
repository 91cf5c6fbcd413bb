"""Names of columns that are good in SQL, in filters and in URLs, whatever they were called in a file.

A name is lower case; what is neither letter nor digit becomes an underscore. It is no word of SQL, has at most 63
bytes, and occurs once. A name that is good already stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from geomill.domain.reserved import RESERVED

LONGEST = 63
ID, GEOMETRY = "gid", "geom"
OURS = frozenset({ID, GEOMETRY})
SYSTEM = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "oid"})
"""Columns that every table of PostgreSQL has."""
_NO_WORD = re.compile(r"[\W_]+", re.UNICODE)


def column_names(given: Sequence[str], taken: Iterable[str] = OURS) -> list[str]:
    """One for each given name, in order."""
    used = set(taken)
    plain = [_plain(name) for name in given]
    kept = {name for name, source in zip(plain, given, strict=True) if name == source}
    made: list[str] = []
    for name, source in zip(plain, given, strict=True):
        chosen = name if name not in used and (name == source or name not in kept) else _free(name, used | kept)
        used.add(chosen)
        made.append(chosen)
    return made


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).lower())
    word = _NO_WORD.sub("_", folded).strip("_") or "column"
    word = f"_{word}" if word[0].isdigit() else word
    word = cut(word, LONGEST)
    return cut(word, LONGEST - 1) + "_" if word in RESERVED | SYSTEM | OURS else word


def _free(name: str, used: set[str]) -> str:
    number = 2
    while (candidate := _numbered(name, number)) in used:
        number += 1
    return candidate


def _numbered(name: str, number: int) -> str:
    end = f"_{number}"
    return cut(name.rstrip("_"), LONGEST - len(end)) + end


def cut(text: str, size: int) -> str:
    """At most so many bytes, and whole characters."""
    return text.encode()[:size].decode(errors="ignore")
