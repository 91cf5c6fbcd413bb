"""Maps names of objects to obstore's stores and keys, for each kind of store."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from obstore.exceptions import BaseError
from obstore.store import AzureStore, LocalStore, S3Store

from geomill.domain.location import AzureAccount, Folder, Location, S3Bucket, parse_location
from geomill.domain.objectname import ObjectName, Zone, check_container, check_zone
from geomill.errors import InvalidName, NotFoundError, SettingsError, StorageUnavailable
from geomill.storage.connection_string import Connection, read_connection
from geomill.storage.delegation import Delegations, storage_token
from geomill.storage.recipe import StorageRecipe

if TYPE_CHECKING:
    from obstore.store import AzureCredential, ClientConfig, ObjectStore, RetryConfig

STAGING = ".uploads"
"""The folder of incomplete uploads in a local zone. It is not a valid container name."""
STALE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class ResolvedContainer:
    """A container in its store. Its keys begin with `base`."""

    zone: Zone
    container: str
    location: Location
    store: ObjectStore
    base: str

    def key(self, path: str) -> str:
        return self.base + path

    def name(self, key: str) -> ObjectName:
        return ObjectName(self.zone, self.container, key.removeprefix(self.base))

    @property
    def local(self) -> bool:
        return isinstance(self.location, Folder)

    def staging_key(self) -> str:
        return f"{STAGING}/{uuid4().hex}"

    def inside(self, path: str) -> bool:
        """Whether the path stays inside the zone, even through symbolic links."""
        if not isinstance(self.location, Folder):
            return True
        root = os.path.realpath(self.location.path)
        real = os.path.realpath(os.path.join(root, self.base, path))  # noqa: PTH118  paths are many: strings are faster
        return os.path.commonpath((root, real)) == root

    def remove_empty_folders(self, path: str) -> None:
        """Remove empty folders from `path` downwards. Folders above may be about to be written to."""
        if isinstance(self.location, Folder):
            for folder, _, _ in os.walk(self.location.path / self.key(path), topdown=False):
                with contextlib.suppress(OSError):  # it is not empty, or already gone
                    os.rmdir(folder)  # noqa: PTH106  a string already


class Stores:
    """The stores of all zones. Each is opened at its first use and kept."""

    def __init__(self, recipe: StorageRecipe) -> None:
        self._recipe = recipe
        self._lock = threading.Lock()
        self._opened: dict[tuple[Zone, str], ObjectStore] = {}
        self.delegations = Delegations(recipe.azure.client_id, recipe.timeout_seconds)

    def location(self, zone: Zone) -> Location:
        text = self._recipe.zones.get(zone)
        if text is None:
            raise NotFoundError(f"the zone '{zone}' has no location here", remedy=f"set GEOMILL_{zone.upper()}")
        return parse_location(text)

    def shelf(self, zone: Zone, container: str) -> ResolvedContainer:
        zone = check_zone(zone)
        check_container(container)
        location = self.location(zone)
        apart = isinstance(location, AzureAccount)
        with self._lock:
            key = (zone, container if apart else "")
            if key not in self._opened:
                self._opened[key] = self.open(location, container)
            return ResolvedContainer(zone, container, location, self._opened[key], "" if apart else f"{container}/")

    def place(self, name: ObjectName) -> tuple[ResolvedContainer, str]:
        """Return the container and the object's key."""
        shelf = self.shelf(name.zone, name.container)
        if not shelf.inside(name.path):
            raise InvalidName(
                f"path {name.path!r} leads out of the zone '{name.zone}' by a symbolic link",
                remedy="copy the file into the zone",
            )
        return shelf, shelf.key(name.path)

    def prepare(self) -> None:
        """Create the zones in the data folder, and remove the remains of old uploads from all local zones."""
        for zone in self._recipe.zones:
            location = self.location(Zone(zone))
            if isinstance(location, Folder):
                self._make(location.path)
                _sweep(location.path / STAGING)

    def missing_folder(self, zone: Zone) -> bool:
        location = self.location(zone)
        return isinstance(location, Folder) and self._ours(location.path) and not location.path.exists()

    def azure_connection(self, account: str) -> Connection:
        """Return the connection from the account's own connection string, or from the other settings."""
        azure = self._recipe.azure
        for connection in map(read_connection, azure.connection_strings):
            if connection.account == account:
                connection.require_encryption()
                return connection
        return Connection(account, "", None, azure.key, None if azure.key else azure.sas_token)

    def open(self, location: Location, container: str) -> ObjectStore:
        """Open a store at the location. `container` is used only on Azure."""
        try:
            match location:
                case Folder(path):
                    self._make(path)
                    return LocalStore(path)
                case AzureAccount(account, prefix):
                    return self._azure(self.azure_connection(account), container, prefix)
                case S3Bucket(bucket, prefix):
                    return self._s3(bucket, prefix)
        except (BaseError, ValueError):  # their text may show the setting
            raise SettingsError(
                f"the settings of {location} cannot be used", remedy="check its credentials and its endpoint"
            ) from None

    def _ours(self, folder: Path) -> bool:
        return bool(self._recipe.data) and folder.is_relative_to(self._recipe.data)

    def _make(self, folder: Path) -> None:
        try:
            if self._ours(folder):
                folder.mkdir(parents=True, exist_ok=True)
            if not folder.is_dir():
                raise StorageUnavailable(f"the folder {folder} does not exist", remedy="mount it or create it")
        except OSError as error:
            raise StorageUnavailable(f"the folder {folder} cannot be used: {error.strerror}") from error

    def _azure(self, connection: Connection, container: str, prefix: str) -> AzureStore:
        all_options: dict[str, Any] = {
            "account_name": connection.account,
            "endpoint": connection.endpoint,
            "account_key": connection.key,
            "sas_key": connection.sas_token,
        }
        config: Any = {name: value for name, value in all_options.items() if value is not None}
        return AzureStore(
            container,
            prefix=prefix or None,
            config=config,
            credential_provider=self._credential if connection.uses_identity else None,
            client_options=self._client(connection.endpoint),
            retry_config=self._retry(),
        )

    def _credential(self) -> AzureCredential:
        """Return the token of the managed identity. obstore asks again before it ends."""
        token = storage_token(self._recipe.azure.client_id)
        return {"token": token.text, "expires_at": token.expires_at}

    def _s3(self, bucket: str, prefix: str) -> S3Store:
        s3 = self._recipe.s3
        all_options: dict[str, Any] = {
            "access_key_id": s3.key_id,
            "secret_access_key": s3.secret,
            "session_token": s3.session_token,
            "region": s3.region,
            "endpoint": s3.endpoint,
        }
        config: Any = {name: value for name, value in all_options.items() if value is not None}
        return S3Store(
            bucket,
            prefix=prefix or None,
            config=config,
            client_options=self._client(s3.endpoint),
            retry_config=self._retry(),
        )

    def _client(self, endpoint: str | None) -> ClientConfig:
        return {
            "timeout": timedelta(seconds=self._recipe.timeout_seconds),
            "connect_timeout": timedelta(seconds=min(5.0, self._recipe.timeout_seconds)),
            "allow_http": endpoint is not None and endpoint.startswith("http://"),
        }

    def _retry(self) -> RetryConfig:
        return {"max_retries": 12, "retry_timeout": timedelta(seconds=self._recipe.retry_seconds)}


def _sweep(staging: Path) -> None:
    if staging.is_dir():
        for file in staging.iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was finished or swept meanwhile
                if time.time() - file.stat().st_mtime > STALE_SECONDS:
                    file.unlink()
