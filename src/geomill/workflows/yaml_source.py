"""YAML as data with line numbers.

Stricter and smaller than YAML at large: the scalars of YAML 1.2's core schema, so that `on`, `no` and `12:30` stay
text and dates are text; keys are text and given once; no tags; aliases, but no bombs. The parser's events are taken
one by one without recursion, so neither depth nor aliases can exhaust the process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events

from geomill.domain.engine.finding import Path, dotted
from geomill.errors import Problem, WorkflowError

LARGEST_FILE = 5_000_000
MOST_VALUES = 500_000
"""Values in a document, those of an alias counted each time it is used."""
DEEPEST = 64

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STR = "tag:yaml.org,2002:str"
_PLAIN_TAGS = (None, "!", _STR, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Document:
    """A mapping, and the line of every key and list item in it."""

    value: dict[str, Any]
    lines: Mapping[Path, int]

    def line_of(self, path: Path) -> int:
        """The line of a place, or of the nearest place around it that is in the file."""
        for length in range(len(path), 0, -1):
            if line := self.lines.get(path[:length]):
                return line
        return 1


def read_yaml(source: str | bytes, *, file: str) -> Document:
    """Raises `WorkflowError` with file and line for everything that is not a sound YAML mapping."""
    reader = _Reader()
    try:
        text = _decoded(source)
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
        reader.finish()
    except _Stop as stop:
        reader.problem((), stop.message, stop.line, stop.hint)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(_line(mark), text.rstrip().count("\n") + 1)
        reader.problem((), _reason(error), line, _tab_hint(text, line))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reader.problem((), f"the character {error.character!r} is not allowed in YAML", line)
    if reader.problems:
        raise invalid(file, reader.problems)
    return Document(reader.root, reader.lines)


def invalid(file: str, problems: list[Problem]) -> WorkflowError:
    """The error of one file, with the file's name put to each problem."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return WorkflowError(
        f"{file} has {count}",
        problems=[Problem(p.where, p.message, p.hint, file, max(p.line, 1)) for p in problems],
    )


def _decoded(source: str | bytes) -> str:
    data = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    if len(data) > LARGEST_FILE:
        raise _Stop(f"the file has more than {LARGEST_FILE:,} bytes", 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Stop(f"the byte 0x{data[error.start]:02x} is not UTF-8", line, "save the file as UTF-8") from error


def _reason(error: yaml.MarkedYAMLError) -> str:
    reason = " ".join(part for part in (error.context, error.problem) if part)
    return f"the YAML cannot be read: {reason}"


def _tab_hint(text: str, line: int) -> str:
    broken = "".join(text.split("\n")[line - 1 : line])
    indent = broken[: len(broken) - len(broken.lstrip())]
    return "indent with spaces, not with tabs" if "\t" in indent else ""


def _line(mark: Any) -> int:
    return mark.line + 1 if mark else 1


class _Stop(Exception):  # noqa: N818  nothing after this point can be read
    def __init__(self, message: str, line: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


@dataclass(slots=True)
class _Open:
    """A mapping or list that is not closed yet."""

    value: dict[str, Any] | list[Any]
    path: Path
    anchor: str | None
    size: int = 1
    key: str | None = None

    @property
    def expects_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None

    def place(self) -> Path:
        """Where the next value goes."""
        return (*self.path, len(self.value) if isinstance(self.value, list) else str(self.key))

    def add(self, value: Any, size: int) -> None:
        self.size += size
        if isinstance(self.value, list):
            self.value.append(value)
        else:
            self.value[str(self.key)] = value
            self.key = None


@dataclass(slots=True)
class _Reader:
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    root: Any = None
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    _documents: int = 0
    _values: int = 0

    def problem(self, path: Path, message: str, line: int, hint: str = "") -> None:
        self.problems.append(Problem(dotted(path), message, hint, line=line))

    def take(self, event: events.Event) -> None:
        line = _line(event.start_mark)
        match event:
            case events.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _Stop("there is a second document in the file", line, "keep one workflow per file")
            case events.ScalarEvent():
                self._scalar(event, line)
            case events.MappingStartEvent() | events.SequenceStartEvent():
                self._begin(event, line)
            case events.MappingEndEvent() | events.SequenceEndEvent():
                self._end()
            case events.AliasEvent():
                self._alias(event, line)

    def finish(self) -> None:
        if not isinstance(self.root, dict):
            kind = "is empty" if self.root is None else f"holds a {type(self.root).__name__}"
            self.problem((), f"the file {kind}", 1, "a workflow is a mapping with workflow_id, name and nodes")

    def _place(self) -> Path:
        return self._open[-1].place() if self._open else ()

    def _count(self, size: int, line: int) -> None:
        self._values += size
        if self._values > MOST_VALUES:
            raise _Stop(f"the file has more than {MOST_VALUES:,} values, aliases included", line)

    def _scalar(self, event: events.ScalarEvent, line: int) -> None:
        self._count(1, line)
        self._check_tag(event.tag, line)
        if self._open and self._open[-1].expects_key:
            self._key(event, line)
            return
        place = self._place()
        self.lines.setdefault(place, line)
        try:
            value = _resolved(event)
        except ValueError as error:
            value = None
            self.problem(place, str(error), line)
        self._add(value, 1, event.anchor)

    def _key(self, event: events.ScalarEvent, line: int) -> None:
        frame = self._open[-1]
        frame.key = event.value
        place = frame.place()
        if event.value == "<<" and event.implicit[0]:
            self.problem(place, "merge keys are not supported", line, "write the keys out")
        elif event.value in frame.value:
            first = self.lines.get(place, line)
            self.problem(place, f"the key '{event.value}' is given twice", line, f"first on line {first}")
        try:
            _storable(event.value)
        except ValueError as error:
            self.problem((), str(error), line)
        self.lines.setdefault(place, line)

    def _begin(self, event: events.CollectionStartEvent, line: int) -> None:
        self._count(1, line)
        self._check_tag(event.tag, line)
        if self._open and self._open[-1].expects_key:
            raise _Stop("a key must be text, not a mapping or a list", line, "put a value with {{ }} in quotes")
        if len(self._open) >= DEEPEST:
            raise _Stop(f"the file is nested deeper than {DEEPEST} levels", line)
        place = self._place()
        self.lines.setdefault(place, line)
        self._open.append(_Open({} if isinstance(event, events.MappingStartEvent) else [], place, event.anchor))

    def _end(self) -> None:
        closed = self._open.pop()
        self._add(closed.value, closed.size, closed.anchor)

    def _alias(self, event: events.AliasEvent, line: int) -> None:
        name = event.anchor
        if self._open and self._open[-1].expects_key:
            raise _Stop("a key must be text, not an alias", line)
        if any(frame.anchor == name for frame in self._open):
            raise _Stop(f"the alias '*{name}' stands inside of what it repeats", line)
        if name not in self._anchors:
            raise _Stop(f"the alias '*{name}' has no anchor '&{name}' before it", line)
        value, size = self._anchors[name]
        self._count(size, line)
        self.lines.setdefault(self._place(), line)
        self._add(value, size, None)

    def _add(self, value: Any, size: int, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if self._open:
            self._open[-1].add(value, size)
        else:
            self.root = value

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in _PLAIN_TAGS:
            self.problem((), f"the tag {tag!r} is not supported", line, "remove it")


def _resolved(event: events.ScalarEvent) -> Any:
    text: str = event.value
    if event.tag is not None or not event.implicit[0]:
        return _storable(text)
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
        raise ValueError(f"{text} is not a JSON number")
    return float(text) if _FLOAT.fullmatch(text) else _storable(text)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("the number has too many digits") from error


def _storable(text: str) -> str:
    """YAML can escape characters that PostgreSQL's jsonb refuses."""
    if "\x00" in text:
        raise ValueError("the text has a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("the text has half of a surrogate pair")
    return text
