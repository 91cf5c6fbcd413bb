"""The public names for authors of handlers."""

from geomill.domain.objectname import ObjectName, Zone
from geomill.sdk.context import HandlerContext, SavedCheckpoint
from geomill.sdk.database import DatabaseAccess
from geomill.sdk.registration import register_handler
from geomill.sdk.result import HandlerError, HandlerResult
from geomill.storage import ObjectInfo, Storage, Stored, SyncStorage

__all__ = [
    "DatabaseAccess",
    "HandlerContext",
    "HandlerError",
    "HandlerResult",
    "ObjectInfo",
    "ObjectName",
    "SavedCheckpoint",
    "Storage",
    "Stored",
    "SyncStorage",
    "Zone",
    "register_handler",
]
