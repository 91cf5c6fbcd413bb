"""The name of an object in a store: zone, container and path. All checks of names are here.

Names come from users and become file names, URLs and GDAL paths. A name is allowed only if it means the same in a local
folder, in Azure Blob Storage and in S3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from geomill.errors import InvalidName, nearest

LONGEST_PATH = 900
"""Bytes of UTF-8. Azure and S3 allow 1024, including container and prefix."""
LONGEST_SEGMENT = 240
"""Bytes. File systems allow 255, and the names of unfinished files are longer."""
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9])+")
_STAGED = re.compile(r"#[0-9]+\Z")


class Zone(StrEnum):
    """Where objects lie: sources (`bronze`), results (`silver`) and exported files (`external`)."""

    BRONZE = "bronze"
    SILVER = "silver"
    EXTERNAL = "external"


def check_zone(value: str, field: str = "zone") -> Zone:
    try:
        return Zone(value)
    except ValueError:
        raise InvalidName(f"{field} {_shown(value)} is not a zone", remedy=nearest(value, Zone)) from None


def is_container(value: str) -> bool:
    """Whether the value is a container name by Azure's rule. It holds for all stores, so that data can be moved between
    them."""
    return 3 <= len(value) <= 63 and _CONTAINER.fullmatch(value) is not None


def check_container(value: str, field: str = "container_name") -> str:
    if not is_container(value):
        raise InvalidName(
            f"{field} {_shown(value)} is not a container name",
            remedy="use 3 to 63 lower-case letters, digits and single hyphens between them",
        )
    return value


def check_path(value: str, field: str = "path") -> str:
    if value.startswith("/"):
        raise InvalidName(f"{field} {_shown(value)} is absolute", remedy="give it relative to the container")
    if problem := _unfit(value):
        raise InvalidName(f"{field} {_shown(value)} {problem[0]}", remedy=problem[1])
    for segment in value.split("/"):
        if problem := _unfit_segment(segment):
            raise InvalidName(f"{field} {_shown(value)} {problem[0]}", remedy=problem[1])
    return value


def _unfit(value: str) -> tuple[str, str] | None:
    if not value:
        return "is empty", "name an object, such as 'folder/file.tif'"
    if "\\" in value:
        return "has a backslash", "separate folders by '/'"
    if any(map(_unprintable, value)):
        return "has a character that is not text", "remove control characters and broken UTF-8"
    if len(value.encode()) > LONGEST_PATH:
        return f"is longer than {LONGEST_PATH} bytes", "shorten it"
    return None


def _unfit_segment(segment: str) -> tuple[str, str] | None:
    if not segment:
        return "has an empty part", "write one '/' between two names, and none at the end"
    if segment in (".", ".."):
        return f"has the part '{segment}'", "name the object directly"
    if segment != segment.strip() or segment.endswith("."):
        return f"has the part {_shown(segment)}", "remove spaces at its beginning and end, and a dot at its end"
    if _STAGED.search(segment):
        return f"has the part {_shown(segment)}", "remove '#' and digits from its end: they mark unfinished files"
    if len(segment.encode()) > LONGEST_SEGMENT:
        return f"has a part longer than {LONGEST_SEGMENT} bytes", "shorten it"
    return None


def _unprintable(character: str) -> bool:
    """Whether the character is a control, a line separator, half of a surrogate pair or a Unicode noncharacter."""
    code = ord(character)
    return (
        code < 0x20
        or 0x7F <= code < 0xA0
        or code in (0x2028, 0x2029)
        or 0xD800 <= code <= 0xDFFF
        or 0xFDD0 <= code <= 0xFDEF
        or code & 0xFFFE == 0xFFFE
    )


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:79] + "…")


@dataclass(frozen=True, slots=True)
class ObjectName:
    """The name of an object. Its parts are checked when it is created."""

    zone: Zone
    container: str
    path: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "zone", check_zone(self.zone))
        check_container(self.container)
        check_path(self.path)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `zone/container/path`, the form that `str` returns."""
        zone, _, rest = text.partition("/")
        container, _, path = rest.partition("/")
        return cls(check_zone(zone), container, path)

    def __str__(self) -> str:
        return f"{self.zone}/{self.container}/{self.path}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]
