"""Refuses a GeoJSON that names its CRS by a link, as the standard of 2008 allows.

GDAL follows such a link, and assumes degrees if it fails. Both are wrong here: a file must not trigger requests, and
coordinates must not be placed by a guess. So the file is refused before GDAL opens it. The check reads the bytes. A
name written with escapes passes it, but `loading.configure` keeps GDAL from sending requests.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from geomill.datasets.refusals import refused

_MEMBER = re.compile(rb'"crs"\s{0,100}:\s{0,100}\{')
_LINK = re.compile(rb'"(?:type"\s{0,100}:\s{0,100}"(?:link|url)|href|url)"', re.IGNORECASE)
_CHECKED_BYTES = 500
"""The number of bytes of such a member that are checked."""


def refuse_linked_crs(path: Path, name: str) -> None:
    """Refuse a linked CRS in a collection, a feature or a geometry: GDAL looks for it in all of them."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for member in _MEMBER.finditer(content):
            if _LINK.search(content[member.end() : member.end() + _CHECKED_BYTES].split(b"}")[0]):
                raise refused(
                    "outside_reference",
                    f"'{name}' gives its CRS as a link, which is not followed: name the CRS in the file, such as "
                    "urn:ogc:def:crs:EPSG::32633, or write degrees without a 'crs'",
                )
