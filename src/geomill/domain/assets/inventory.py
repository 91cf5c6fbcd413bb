"""The inventory of a revision: its files as its job listed them, and their names in the external zone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from geomill.domain.assets import naming
from geomill.domain.objectname import Zone
from geomill.errors import AssetState

PUBLIC_CONTAINER = "public"
"""The container of all exported files."""
_DEFAULTS = {"media_type": "application/octet-stream", "role": "data"}
_REVISION_FOLDER = re.compile(r"^.*?/_r[0-9]+/")


def within_revision(path: str) -> str:
    """Return the path below the folder of its revision. After a rollback that is the folder of an older revision."""
    return _REVISION_FOLDER.sub("", path)


def checked(outputs: Mapping[str, Any] | None, asset_id: str, blob_stem: str) -> list[dict[str, Any]]:
    """Return the files of a revision. Raises `AssetState` if one does not belong to the asset, so that an asset never
    exports or deletes the files of another."""
    files = (outputs or {}).get("files") or []
    for file in files if isinstance(files, list) else [files]:
        require_own(file, asset_id, blob_stem)
    return list(files)


def require_own(file: Any, asset_id: str, blob_stem: str) -> None:
    if not isinstance(file, dict) or not all(isinstance(file.get(name), str) for name in ("container", "path")):
        raise AssetState(
            f"the files of {asset_id} cannot be exported: its workflow does not name the place of each file",
            remedy="return the workflow's output 'files' as a list of objects with zone, container, path, sha256, size",
        )
    if file.get("zone") != Zone.SILVER or not file["path"].startswith(f"{blob_stem}/_r"):
        raise AssetState(
            f"the files of {asset_id} cannot be exported: '{file['path'][:200]}' does not belong to the asset",
            remedy="change the workflow so that it writes its files under the input 'blob_prefix'",
        )


def outside(file: Mapping[str, Any], blob_stem: str, revision: int) -> dict[str, Any]:
    """Return the entry of the file's copy in the external zone."""
    path = f"{naming.blob_prefix(blob_stem, revision)}/{within_revision(file['path'])}"
    return {**_DEFAULTS, **file, "zone": Zone.EXTERNAL.value, "container": PUBLIC_CONTAINER, "path": path}


def slices(count: int, most: int = 1000, size: int | None = None) -> list[dict[str, int]]:
    """Divide the inventory into at most `most` parts, one for each task of an export, or into parts of this size."""
    size = size or max(1, -(-count // most))
    return [{"first": first, "count": min(size, count - first)} for first in range(0, count, size)]


def files_outside(files: Sequence[Mapping[str, Any]], blob_stem: str, revision: int) -> list[dict[str, Any]]:
    return [outside(file, blob_stem, revision) for file in files]
