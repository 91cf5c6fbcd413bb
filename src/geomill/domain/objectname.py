"""The name of an object in a store: zone, container and path, checked once, here.

Names come from outside, and end as file names, URLs and GDAL paths. What is allowed is what means the same in all of
them: a local folder, Azure Blob and S3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from geomill.errors import InvalidName, nearest

LONGEST_PATH = 900
"""Bytes of UTF-8. Azure and S3 take 1024, of which a container and a prefix need some."""
LONGEST_SEGMENT = 240
"""Bytes. File systems take 255, of which names of unfinished files need some."""
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9])+")
_STAGED = re.compile(r"#[0-9]+\Z")


class Zone(StrEnum):
    """Sources, results, and what is public."""

    BRONZE = "bronze"
    SILVER = "silver"
    EXTERNAL = "external"


def check_zone(value: str, field: str = "zone") -> Zone:
    try:
        return Zone(value)
    except ValueError:
        raise InvalidName(f"{field} {_shown(value)} is not a zone", remedy=nearest(value, Zone)) from None


def is_container(value: str) -> bool:
    """Azure's rule, for all stores, so that data can move from one to the other."""
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
        return "has a character that is not text", "leave out control characters and broken UTF-8"
    if len(value.encode()) > LONGEST_PATH:
        return f"is longer than {LONGEST_PATH} bytes", "shorten it"
    return None


def _unfit_segment(segment: str) -> tuple[str, str] | None:
    if not segment:
        return "has an empty part", "write one '/' between two names, and none at the end"
    if segment in (".", ".."):
        return f"has the part '{segment}'", "name the object directly"
    if segment != segment.strip() or segment.endswith("."):
        return f"has the part {_shown(segment)}", "let no part begin or end with a space, or end with a dot"
    if _STAGED.search(segment):
        return f"has the part {_shown(segment)}", "let no part end with '#' and digits: unfinished files are called so"
    if len(segment.encode()) > LONGEST_SEGMENT:
        return f"has a part longer than {LONGEST_SEGMENT} bytes", "shorten it"
    return None


def _unprintable(character: str) -> bool:
    """Controls, line separators, halves of surrogate pairs, and what Unicode calls noncharacters."""
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
    """One that exists has passed the checks."""

    zone: Zone
    container: str
    path: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "zone", check_zone(self.zone))
        check_container(self.container)
        check_path(self.path)

    @classmethod
    def parse(cls, text: str) -> Self:
        """`zone/container/path`, as `str` gives it."""
        zone, _, rest = text.partition("/")
        container, _, path = rest.partition("/")
        return cls(check_zone(zone), container, path)

    def __str__(self) -> str:
        return f"{self.zone}/{self.container}/{self.path}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]
