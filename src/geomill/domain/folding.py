"""Folds letters with accents to the plain Latin letters that names and identifiers may have."""

from __future__ import annotations

import unicodedata

_WHOLE = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "\u0131": "i",
     "Æ": "AE", "Œ": "OE", "Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "TH", "Ħ": "H", "ẞ": "SS"}
)  # fmt: skip
"""Letters that Unicode does not take apart."""


def folded(text: str) -> str:
    """Return the text with Latin letters instead of those with accents: `Elevación` becomes `Elevacion`. Letters of
    other scripts stay as they are."""
    parts: list[str] = []
    base = ""
    for character in unicodedata.normalize("NFD", text.translate(_WHOLE)):
        if not unicodedata.combining(character):
            base = character
            parts.append(character)
        elif not base.isascii():
            parts.append(character)
    return unicodedata.normalize("NFC", "".join(parts))
