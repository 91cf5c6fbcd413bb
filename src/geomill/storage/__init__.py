"""Object stores: zones of containers in local folders, Azure Blob Storage or S3, behind one interface."""

from geomill.storage.objects import ObjectInfo, Progress, Stored
from geomill.storage.recipe import StorageRecipe
from geomill.storage.storage import NO_STORAGE, Storage
from geomill.storage.waiting import SyncStorage

__all__ = ["NO_STORAGE", "ObjectInfo", "Progress", "Storage", "StorageRecipe", "Stored", "SyncStorage"]
