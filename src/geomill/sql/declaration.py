"""Writes `statements.py`: a class for each file in `queries`, with a declared attribute for each statement.

`script/schema` runs it after a statement was added, renamed or deleted.
"""

from __future__ import annotations

import sys

from geomill.sql.files import parse, query_nouns, query_text

_HEAD = '''\
"""The names of all statements in `queries/*.sql`, for mypy and for text search.

Written by script/schema from the files: do not edit.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, LiteralString, overload

from geomill.sql.files import Statements

'''
_TAIL = '''\
def queries(noun: str) -> Statements:
    """Returns the statements of `queries/<noun>.sql`, which is read at its first use: `queries("jobs").reopen`."""
    return _read(noun)


@cache
def _read(noun: str) -> Statements:
    return _CLASSES[noun]()


_CLASSES: dict[str, type[Statements]] = {
'''


def declarations() -> str:
    """Returns the text of `statements.py`, made from the SQL files."""
    nouns = query_nouns()
    classes = "".join(map(_class, nouns))
    overloads = "".join(
        f'@overload\ndef queries(noun: Literal["{noun}"]) -> {_class_name(noun)}: ...\n' for noun in nouns
    )
    table = "".join(f'    "{noun}": {_class_name(noun)},\n' for noun in nouns)
    return f"{_HEAD}{classes}\n{overloads}{_TAIL}{table}}}\n"


def _class(noun: str) -> str:
    names = "".join(f"    {name}: LiteralString\n" for name in sorted(parse(noun, query_text(noun))))
    return f'\nclass {_class_name(noun)}(Statements):\n    noun = "{noun}"\n\n{names}\n'


def _class_name(noun: str) -> str:
    return "".join(map(str.capitalize, noun.split("_"))) + "Statements"


if __name__ == "__main__":
    sys.stdout.write(declarations())
