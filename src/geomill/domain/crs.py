"""Names of coordinate reference systems, checked before GDAL or PROJ sees them.

Both libraries accept more than names: GDAL also fetches URLs and reads local files. So callers may write the code of an
authority, its OGC URN, or WKT. Everything else is refused.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from geomill.errors import InputError, Problem

AUTHORITIES = ("EPSG", "ESRI", "OGC", "IGNF", "IAU_2015", "NKG", "NRCAN", "PROJ")
"""The authorities in PROJ's database."""
LONGEST_WKT = 20_000
EXAMPLES = "EPSG:32633, OGC:CRS84, urn:ogc:def:crs:EPSG::32633 or WKT"
_SHOWN = 80
_AUTHORITY = "|".join(AUTHORITIES)
_CODE = re.compile(rf"(?:{_AUTHORITY}):[0-9A-Z_.]{{1,40}}(?:\+[0-9]{{1,10}})?", re.IGNORECASE | re.ASCII)
_URN = re.compile(
    rf"urn:(?:x-)?ogc:def:crs:(?:{_AUTHORITY}):[0-9.]{{0,20}}:[0-9A-Z_]{{1,40}}", re.IGNORECASE | re.ASCII
)
_WKT = re.compile(
    r"\s*(?:(?:GEOG|GEOD|GEODETIC|GEOGRAPHIC|PROJ|PROJECTED|BOUND|COMPOUND|VERT|VERTICAL|ENG|ENGINEERING|DERIVEDPROJ)CRS"
    r"|(?:GEOG|GEOC|PROJ|COMPD|VERT|LOCAL|FITTED)_?CS)\s*[\[(]",
    re.IGNORECASE | re.ASCII,
)


def is_crs(text: str) -> bool:
    """Whether the text has the form of a name or of WKT. PROJ decides whether the system exists."""
    if _CODE.fullmatch(text) or _URN.fullmatch(text):
        return True
    return len(text) <= LONGEST_WKT and bool(_WKT.match(text)) and text.rstrip().endswith(("]", ")"))


def check_crs(text: str, field: str) -> str:
    """Return the text. Raises `InputError` if it does not have the form of a coordinate reference system."""
    if not is_crs(text):
        problem = Problem(field, f"{text[:_SHOWN]!r} is not a coordinate reference system", f"write it as {EXAMPLES}")
        raise InputError(f"a value is wrong: {problem}", problems=[problem])
    return text


def _has_form(text: str) -> str:
    if not is_crs(text):
        raise ValueError(f"is not a coordinate reference system: write it as {EXAMPLES}")
    return text


CrsText = Annotated[str, AfterValidator(_has_form)]
"""A field of a model whose value is safe to pass to GDAL and PROJ."""
