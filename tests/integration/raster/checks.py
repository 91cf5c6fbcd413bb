"""Judgements of others about what we made: rio-cogeo and, where it is installed, GDAL's own script about COGs; pystac
about catalogue entries."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pystac
from pystac.validation import RegisteredValidator
from rio_cogeo.cogeo import cog_validate

from geomill.sdk import ObjectName, Storage

GDAL_SCRIPT = "osgeo_utils.samples.validate_cloud_optimized_geotiff"


@functools.cache
def _system_python() -> str | None:
    """Return a Python that has GDAL's own bindings: Debian's, with python3-gdal."""
    python = "/usr/bin/python3"
    probe = [python, "-c", f"import {GDAL_SCRIPT}"]
    return python if Path(python).exists() and not subprocess.run(probe, capture_output=True).returncode else None


def read(storage: Storage, name: ObjectName) -> bytes:
    """Read the file directly: the storage would need the event loop."""
    return Path(storage.gdal_path(name)).read_bytes()


def sizes(storage: Storage, container: str, prefix: str = "") -> dict[str, int]:
    """Return the sizes of all objects, by path."""
    top = Path(storage.recipe.zones["silver"]) / container
    paths = {path.relative_to(top).as_posix(): path for path in (top / prefix).rglob("*") if path.is_file()}
    return {name: path.stat().st_size for name, path in paths.items()}


def check_cog(storage: Storage, name: ObjectName) -> None:
    path = storage.gdal_path(name)
    valid, errors, warnings = cog_validate(path, strict=True)
    assert valid, (errors, warnings)
    if python := _system_python():
        command = [python, "-m", GDAL_SCRIPT, "--full-check=yes", path]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, done.stdout + done.stderr


def check_stac(storage: Storage, name: ObjectName) -> dict[str, Any]:
    """Against the core schemas, which pystac carries. Those of extensions would have to be fetched."""
    document = json.loads(read(storage, name))
    core = {**document, "stac_extensions": []}
    core["links"] = [{"rel": "collection", "href": "./collection.json"}] if document["type"] == "Feature" else []
    assert pystac.validation.validate_dict(core)
    assert isinstance(RegisteredValidator.get_validator(), pystac.validation.JsonSchemaSTACValidator)
    return document
