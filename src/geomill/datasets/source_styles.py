"""Styles that arrive with a source. The first one that can be converted becomes the default style of the asset.

A style never fails the data: a style that is broken, too large or without a counterpart is a warning.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel

from geomill.domain.assets.foreign_style import StyleLanguage, convert_style
from geomill.domain.assets.foreign_xml import LONGEST, NotConvertible
from geomill.domain.assets.style import LARGEST_STYLE, RasterStyle, VectorStyle
from geomill.errors import InputError, NotFoundError
from geomill.sdk import ObjectName, Storage

SOURCE_STYLE = "source"
"""The name of the style. It stays the same over all revisions, so that addresses with it stay valid."""
LARGEST_FILE = 4 * LONGEST
"""In bytes. A character has four at most."""
_LONGEST_TITLE = 200
_LONGEST_REASON = 300
_SIXTEEN_BITS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
Fit = Callable[[RasterStyle | VectorStyle], tuple[RasterStyle | VectorStyle, list[str]]]
"""Adapts a style to the data and returns warnings. Raises `NotConvertible` if it cannot."""


class SourceStyles(BaseModel):
    """Styles among the outputs of a job, as `StyleBook` reads them."""

    default: str | None = None
    styles: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class ForeignStyle:
    """A style in the language of another program. `origin` says where it was found."""

    language: StyleLanguage
    origin: str
    data: bytes
    title: str = ""


@dataclass(frozen=True)
class UnreadStyle:
    """A style that was found and not read."""

    origin: str
    reason: str


Candidate = ForeignStyle | UnreadStyle


def chosen_style(candidates: Iterable[Candidate], fit: Fit) -> tuple[SourceStyles, list[str]]:
    """Return the first style that can be converted and fits, and warnings."""
    warnings: list[str] = []
    for candidate in candidates:
        try:
            style, losses = _converted(candidate, fit)
        except (NotConvertible, InputError) as error:
            reason = str(error).removeprefix("the request is wrong: ")[:_LONGEST_REASON]
            warnings.append(f"the style {candidate.origin} is not used: {reason}")
            continue
        document = style.model_dump(mode="json", exclude_none=True)
        return (
            SourceStyles(default=SOURCE_STYLE, styles={SOURCE_STYLE: document}),
            [*warnings, *(f"the style {candidate.origin}: {loss}" for loss in losses)],
        )
    return SourceStyles(), warnings


def styles_beside(storage: Storage, name: ObjectName) -> Iterator[Candidate]:
    """Yield the styles that lie beside the source under the same name, such as `dem.qml` beside `dem.tif`."""
    for language in StyleLanguage:
        path = PurePosixPath(name.path).with_suffix(f".{language.value}")
        try:
            beside = ObjectName(name.zone, name.container, str(path))
            size = storage.sync.stat(beside).size
        except (NotFoundError, InputError):  # a name may be too long with this ending
            continue
        origin = f"'{path.name}'"
        if size > LARGEST_FILE:
            yield too_large(origin, size)
        else:
            yield ForeignStyle(language, origin, storage.sync.read(beside, 0, LARGEST_FILE), path.stem)


def too_large(origin: str, size: int) -> UnreadStyle:
    return UnreadStyle(origin, f"it has {size:,} bytes, more than {LARGEST_FILE:,}")


def _converted(candidate: Candidate, fit: Fit) -> tuple[RasterStyle | VectorStyle, list[str]]:
    if isinstance(candidate, UnreadStyle):
        raise NotConvertible(candidate.reason)
    converted, losses = convert_style(candidate.language, _decoded(candidate.data))
    style, warnings = fit(converted)
    title = candidate.title.replace("\x00", "")[:_LONGEST_TITLE]
    style = style.model_copy(update={"title": style.title or title or None})
    if len(style.model_dump_json(exclude_none=True).encode()) > LARGEST_STYLE:
        raise NotConvertible(f"it has more than {LARGEST_STYLE:,} bytes as JSON")
    return style, [*losses, *warnings]


def _decoded(data: bytes) -> str:
    """Return the text. QGIS writes UTF-8; older programs write what their system uses."""
    if data.startswith(_SIXTEEN_BITS):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")
