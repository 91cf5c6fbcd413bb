"""Recognises a file by its first bytes. Only certain matches count; an unknown file is not an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADER_BYTES = 512


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    data_types: tuple[str, ...]
    """The types of data that such a file can hold."""


_RASTER, _VECTOR, _BOTH = ("raster",), ("vector",), ("raster", "vector")
ZIP = b"PK\x03\x04"
_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"II*\0", Kind("a TIFF", _RASTER)),
    (b"MM\0*", Kind("a TIFF", _RASTER)),
    (b"II+\0", Kind("a BigTIFF", _RASTER)),
    (b"MM\0+", Kind("a BigTIFF", _RASTER)),
    (b"\0\0\0\x0cjP  \r\n\x87\n", Kind("a JPEG 2000", _RASTER)),
    (b"\x89PNG\r\n\x1a\n", Kind("a PNG", _RASTER)),
    (b"\xff\xd8\xff", Kind("a JPEG", _RASTER)),
    (b"fgb\x03", Kind("a FlatGeobuf", _VECTOR)),
    (b"PAR1", Kind("a Parquet file", _VECTOR)),
    (b"\x00\x00\x27\x0a", Kind("a shapefile", _VECTOR)),
    (b"SQLite format 3\0", Kind("an SQLite file or GeoPackage", _BOTH)),
    (ZIP, Kind("a ZIP file", _BOTH)),
    (b"\x89HDF\r\n\x1a\n", Kind("an HDF5 file", _RASTER)),
    (b"EHFA_HEADER_TAG", Kind("an ERDAS IMAGINE file", _RASTER)),
    (b"GRIB", Kind("a GRIB file", _RASTER)),
    (b"CDF", Kind("a NetCDF file", _RASTER)),
    (b"%PDF-", Kind("a PDF", ())),
    (b"MZ", Kind("a Windows program", ())),
    (b"\x7fELF", Kind("a program", ())),
)


ZARR_ROOTS = ("zarr.json", ".zgroup", ".zmetadata")
"""The files that name the folder in which they lie as a Zarr store."""
ZARR_METADATA = (*ZARR_ROOTS, ".zarray", ".zattrs")
ZARR_STORE = Kind("a Zarr store", _RASTER)
_ZARR_MEMBER = re.compile(rb"[^/]+\.zarr/.*|(?:.*/)?(?:zarr\.json|\.z(?:group|array|attrs|metadata))", re.DOTALL)


def kind_of(header: bytes) -> Kind | None:
    if header.startswith(ZIP) and _ZARR_MEMBER.fullmatch(_first_member(header)):
        return Kind("a Zarr store in a ZIP file", _RASTER)
    for magic, kind in _MAGIC:
        if header.startswith(magic):
            return kind
    text = header.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return Kind("JSON", _VECTOR)
    if text[:9].lower().startswith((b"<!doctype", b"<html")):
        return Kind("a web page", ())
    return None


def _first_member(header: bytes) -> bytes:
    """Return the name of the first file in a ZIP file."""
    return header[30 : 30 + int.from_bytes(header[26:28], "little")]
