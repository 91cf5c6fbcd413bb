"""The recipe of a `Storage`: plain values that can be pickled or sent as JSON.

It contains secrets, which `repr` does not show. Send it only over a private channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import SecretStr

from geomill.domain.location import Folder, parse_location
from geomill.domain.objectname import Zone
from geomill.storage.connection_string import read_connection

if TYPE_CHECKING:  # a child process has no settings and need not import them
    from geomill.settings import StorageSettings


@dataclass(frozen=True)
class AzureAccess:
    """Credentials for Azure. Without any of them, a managed identity is used."""

    connection_strings: tuple[str, ...] = field(default=(), repr=False)
    key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    client_id: str | None = None


@dataclass(frozen=True)
class S3Access:
    """Credentials for S3. Without a key, Amazon's usual sources are used: web identity, container, instance."""

    key_id: str | None = None
    secret: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True)
class StorageRecipe:
    zones: Mapping[str, str] = field(default_factory=dict)
    """The location of each zone, as in the settings. Folders are absolute."""
    data: str = ""
    """The data folder. Zones in it are created if they are missing. Any other folder may be a mount point that is
    not mounted right now, and a new folder would hide that."""
    azure: AzureAccess = AzureAccess()
    s3: S3Access = S3Access()
    timeout_seconds: float = 30.0
    retry_seconds: float = 60.0

    @classmethod
    def of(cls, settings: StorageSettings, data: Path) -> Self:
        strings = tuple((_plain(settings.azure_connection_strings) or "").split())
        for string in strings:
            read_connection(string)  # reports errors now
        return cls(
            zones={zone: _location(getattr(settings, zone), data.absolute() / zone) for zone in Zone},
            data=str(data.absolute()),
            azure=AzureAccess(
                connection_strings=strings,
                key=_plain(settings.azure_key),
                sas_token=_plain(settings.azure_sas_token),
                client_id=settings.azure_client_id,
            ),
            s3=S3Access(
                key_id=settings.aws_access_key_id,
                secret=_plain(settings.aws_secret_access_key),
                session_token=_plain(settings.aws_session_token),
                region=settings.aws_region,
                endpoint=settings.aws_endpoint_url,
            ),
            timeout_seconds=settings.storage_timeout_sec,
            retry_seconds=settings.storage_retry_sec,
        )

    @classmethod
    def in_folder(cls, data: Path) -> Self:
        """Return a recipe with all zones as folders in `data`, independent of the environment."""
        return cls(zones={zone: str(data.absolute() / zone) for zone in Zone}, data=str(data.absolute()))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        azure = AzureAccess(**{**value["azure"], "connection_strings": tuple(value["azure"]["connection_strings"])})
        return cls(**{**value, "azure": azure, "s3": S3Access(**value["s3"])})


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() or None if secret else None


def _location(text: str | None, default: Path) -> str:
    location = parse_location(text) if text is not None else Folder(default)
    return str(location.path.absolute() if isinstance(location, Folder) else location)
