"""The files beside a source that a job reads too: the place of a picture, a style, the classes of a raster."""

from __future__ import annotations

from pathlib import Path

WORLD_FILES = {
    ".png": (".pgw", ".pngw", ".wld"),
    ".jpg": (".jgw", ".jpgw", ".jpegw", ".wld"),
    ".jpeg": (".jgw", ".jpgw", ".jpegw", ".wld"),
}
STYLES = (".qml", ".sld")
CLASSES = ".aux.xml"
RASTERS = (".tif", ".tiff", ".jp2", *WORLD_FILES)


def companions(file: Path) -> list[Path]:
    """Return those that exist. A ZIP file holds its own."""
    suffix = file.suffix.lower()
    if suffix == ".zip":
        return []
    beside = [file.with_suffix(ending) for ending in (*WORLD_FILES.get(suffix, ()), *STYLES)]
    beside += [file.with_name(file.name + CLASSES)] if suffix in RASTERS else []
    return [path for path in beside if path.is_file()]
