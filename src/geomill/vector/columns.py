"""Chooses column names that are valid in SQL, in filters and in URLs.

A name is lower case, with an underscore for everything but letters and digits. Latin letters lose their accents. A name
is not a word of SQL, has at most 63 bytes, and is unique in its table. A name that meets this already does not change.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from geomill.domain.folding import folded
from geomill.domain.reserved import RESERVED

LONGEST = 63
ID, GEOMETRY = "gid", "geom"
OURS = frozenset({ID, GEOMETRY})
SYSTEM = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "oid"})
"""Columns that every table of PostgreSQL has."""
_NO_WORD = re.compile(r"[\W_]+", re.UNICODE)


def column_names(sources: Sequence[str], reserved: Iterable[str] = OURS) -> list[str]:
    """Return a valid name for each source name, in order. Names in `reserved` are not used."""
    used = set(reserved)
    plain = [_plain(name) for name in sources]
    unchanged = {name for name, source in zip(plain, sources, strict=True) if name == source}
    names: list[str] = []
    for name, source in zip(plain, sources, strict=True):
        chosen = (
            name if name not in used and (name == source or name not in unchanged) else _free(name, used | unchanged)
        )
        used.add(chosen)
        names.append(chosen)
    return names


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFC", folded(unicodedata.normalize("NFKC", name)).lower())
    word = _NO_WORD.sub("_", letters).strip("_") or "column"
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
    """Cut the text to at most `size` bytes without breaking a character."""
    return text.encode()[:size].decode(errors="ignore")
