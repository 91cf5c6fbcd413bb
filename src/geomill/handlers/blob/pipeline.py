"""Where a pipeline puts the files of an export: beside the public ones, where no entry leads."""

from __future__ import annotations

from typing import Any

from geomill.domain.assets.inventory import outside
from geomill.domain.location import AzureAccount, parse_location
from geomill.handlers.blob.places import ARRIVING, PUBLIC
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.orders import AssetOrder


def export_id(job_id: str, first: int) -> str:
    """Return the name of a part of an export. It is the same in all attempts at it."""
    return f"{job_id}.{first}"


def folder(order: AssetOrder, part: str) -> str:
    return f"{ARRIVING}/{order.blob_stem}/{part}"


def target_of(order: AssetOrder, file: dict[str, Any]) -> ObjectName:
    """Return the public place of a file of the inventory."""
    entry = outside(file, order.blob_stem, order.revision)
    return ObjectName(Zone.EXTERNAL, entry["container"], entry["path"])


def arriving(order: AssetOrder, job_id: str, target: ObjectName) -> ObjectName:
    """Return the place where the pipeline puts a file. All parts of an export share the folder of the job."""
    return ObjectName(Zone.EXTERNAL, PUBLIC, f"{folder(order, job_id)}/{target.path}")


def note(order: AssetOrder, job_id: str, part: str) -> ObjectName:
    """Return the place of the note that a run was started."""
    return ObjectName(Zone.EXTERNAL, PUBLIC, f"{folder(order, job_id)}/_started/{part}")


def copy_of(storage: Storage, source: ObjectName, target: ObjectName) -> dict[str, str]:
    """Return one copy as the pipeline's parameter says it."""
    return {
        "sourceContainer": source.container,
        "sourcePath": _path(storage, source),
        "targetContainer": target.container,
        "targetPath": _path(storage, target),
    }


def _path(storage: Storage, name: ObjectName) -> str:
    """Return the path in the container of the account, where the zone may be a folder."""
    location = parse_location(storage.recipe.zones[name.zone])
    prefix = location.prefix if isinstance(location, AzureAccount) else ""
    return f"{prefix}/{name.path}" if prefix else name.path
