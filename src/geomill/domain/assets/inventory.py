"""The inventory of a revision: its files, as its job listed them, and their places outside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from geomill.domain.assets import naming
from geomill.domain.objectname import Zone
from geomill.errors import AssetState

PUBLIC_CONTAINER = "public"
"""Of the external zone."""
_DEFAULTS = {"media_type": "application/octet-stream", "role": "data"}
_REVISION_FOLDER = re.compile(r"^.*?/_r[0-9]+/")


def within_revision(path: str) -> str:
    """The path below the folder of its revision, which after a rollback is an older one."""
    return _REVISION_FOLDER.sub("", path)


def checked(outputs: Mapping[str, Any] | None, asset_id: str, blob_stem: str) -> list[dict[str, Any]]:
    """The files of a revision. Raises `AssetState` unless each of them has a place that belongs to the asset: what an
    asset exports or deletes is never another one's."""
    files = (outputs or {}).get("files") or []
    for file in files if isinstance(files, list) else [files]:
        require_own(file, asset_id, blob_stem)
    return list(files)


def require_own(file: Any, asset_id: str, blob_stem: str) -> None:
    if not isinstance(file, dict) or not all(isinstance(file.get(name), str) for name in ("container", "path")):
        raise AssetState(
            f"the files of {asset_id} cannot be exported: its workflow does not say of each of them where it lies",
            remedy="let the workflow's output 'files' be a list of objects with zone, container, path, sha256 and size",
        )
    if file.get("zone") != Zone.SILVER or not file["path"].startswith(f"{blob_stem}/_r"):
        raise AssetState(
            f"the files of {asset_id} cannot be exported: '{file['path'][:200]}' does not belong to the asset",
            remedy="let the workflow write its files under the input 'blob_prefix'",
        )


def outside(file: Mapping[str, Any], blob_stem: str, revision: int) -> dict[str, Any]:
    """The same file as it lies in the external zone."""
    path = f"{naming.blob_prefix(blob_stem, revision)}/{within_revision(file['path'])}"
    return {**_DEFAULTS, **file, "zone": Zone.EXTERNAL.value, "container": PUBLIC_CONTAINER, "path": path}


def slices(count: int, most: int = 1000) -> list[dict[str, int]]:
    """The inventory in parts, one for each task of an export: at most `most` of them."""
    size = max(1, -(-count // most))
    return [{"first": first, "count": min(size, count - first)} for first in range(0, count, size)]


def files_outside(files: Sequence[Mapping[str, Any]], blob_stem: str, revision: int) -> list[dict[str, Any]]:
    return [outside(file, blob_stem, revision) for file in files]
