"""All that a process needs to build a `Storage`: plain values that can be pickled or sent as JSON.

It holds secrets, which `repr` leaves out; whoever sends it on uses a channel that nobody else can read.
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

if TYPE_CHECKING:  # a child process has no settings, and need not load them
    from geomill.settings import StorageSettings


@dataclass(frozen=True)
class AzureAccess:
    """Without any of these, a managed identity is used."""

    connection_strings: tuple[str, ...] = field(default=(), repr=False)
    key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    client_id: str | None = None


@dataclass(frozen=True)
class S3Access:
    """Without a key, Amazon's usual places are looked at: web identity, container, instance."""

    key_id: str | None = None
    secret: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True)
class StorageRecipe:
    zones: Mapping[str, str] = field(default_factory=dict)
    """The location of each, as in the settings; folders are absolute."""
    data: str = ""
    """Zones in this folder are ours, and made when they are missing. Any other folder may be a mount that is not there
    right now, and a folder in its place would hide it."""
    azure: AzureAccess = AzureAccess()
    s3: S3Access = S3Access()
    timeout_seconds: float = 30.0
    retry_seconds: float = 60.0

    @classmethod
    def of(cls, settings: StorageSettings, data: Path) -> Self:
        strings = tuple((_plain(settings.azure_connection_strings) or "").split())
        for string in strings:
            read_connection(string)  # what is wrong with it is told now
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
        """All zones as folders in `data`, whatever the environment says."""
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
