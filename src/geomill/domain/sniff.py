"""Recognises a file by its first bytes. Only certain matches count; an unknown file is not an error."""

from __future__ import annotations

from dataclasses import dataclass

HEADER_BYTES = 512


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    data_types: tuple[str, ...]
    """The types of data that such a file can hold."""


_RASTER, _VECTOR, _BOTH = ("raster",), ("vector",), ("raster", "vector")
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
    (b"PK\x03\x04", Kind("a ZIP file", _BOTH)),
    (b"\x89HDF\r\n\x1a\n", Kind("an HDF5 file", _RASTER)),
    (b"CDF", Kind("a NetCDF file", _RASTER)),
    (b"%PDF-", Kind("a PDF", ())),
    (b"MZ", Kind("a Windows program", ())),
    (b"\x7fELF", Kind("a program", ())),
)


def kind_of(header: bytes) -> Kind | None:
    for magic, kind in _MAGIC:
        if header.startswith(magic):
            return kind
    text = header.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return Kind("JSON", _VECTOR)
    if text[:9].lower().startswith((b"<!doctype", b"<html")):
        return Kind("a web page", ())
    return None
