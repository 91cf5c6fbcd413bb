"""A GeoJSON may say its CRS by a link (the standard of 2008). GDAL follows it, and takes degrees when it leads nowhere.

Neither is right here: what a file says must not call anybody, and coordinates must not be placed by a guess. So such a
file is refused before GDAL opens it. The look is at the bytes; a name that is spelt with escapes passes it, and then
meets GDAL's switch in `loading.configure`, which lets no request out.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from geomill.datasets.refusals import refused

_MEMBER = re.compile(rb'"crs"\s{0,100}:\s{0,100}\{')
_LINK = re.compile(rb'"(?:type"\s{0,100}:\s{0,100}"(?:link|url)|href|url)"', re.IGNORECASE)
_LOOKED_AT = 500
"""Bytes of such a member."""


def refuse_linked_crs(path: Path, name: str) -> None:
    """In a collection, a feature or a geometry: GDAL looks for it in all of them."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for member in _MEMBER.finditer(content):
            if _LINK.search(content[member.end() : member.end() + _LOOKED_AT].split(b"}")[0]):
                raise refused(
                    "outside_reference",
                    f"'{name}' says its CRS by a link, which is not followed: name it in the file, such as "
                    "urn:ogc:def:crs:EPSG::32633, or write degrees without a 'crs'",
                )
