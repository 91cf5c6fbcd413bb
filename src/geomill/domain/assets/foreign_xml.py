"""Reads the XML of styles of other programs, without entities and in bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, XMLParser

from geomill.errors import InputError, Problem

LONGEST = 400_000
MOST_ELEMENTS = 20_000
_DECLARATIONS = ("<!ENTITY", "<!ATTLIST")
"""Declarations by which a short text becomes a long one: an entity, or an attribute that each element has unsaid."""


class NotConvertible(ValueError):  # noqa: N818
    """The style has nothing that a style of geomill could show. The message says why."""


def read_xml(text: str, field: str) -> Element:
    """Return the root, with names without their namespaces. Raises `InputError`."""
    if len(text) > LONGEST or any(declaration in text.upper() for declaration in _DECLARATIONS):
        raise _wrong(field, f"must have at most {LONGEST:,} characters and no entities or attributes of its own")
    parser = XMLParser()  # noqa: S314  it declares no entities, as checked above
    try:
        parser.feed(text)
        root: Element = parser.close()
    except (ParseError, ValueError) as error:
        raise _wrong(field, f"is not XML: {str(error)[:200]}") from None
    for number, element in enumerate(root.iter()):
        if number > MOST_ELEMENTS:
            raise _wrong(field, f"must have at most {MOST_ELEMENTS:,} elements")
        element.tag = str(element.tag).rpartition("}")[2]
    return root


def number(text: str | None) -> float | None:
    """Return a finite number. None for anything else."""
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) else None


def opacity_of(text: str | None) -> dict[str, float]:
    """Return the opacity of a layer as a part of a style. Empty if the file has none, or one that is no share."""
    share = number(text)
    return {"opacity": share} if share is not None and 0 <= share < 1 else {}


def texts(element: Element, name: str) -> Iterator[str]:
    """Yield the texts of all elements of a name."""
    for part in element.iter(name):
        if part.text and part.text.strip():
            yield part.text.strip()


def _wrong(field: str, message: str) -> InputError:
    problem = Problem(field, message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])
