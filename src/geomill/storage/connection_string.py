"""Azure's connection strings: `AccountName=…;AccountKey=…;BlobEndpoint=…`."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from geomill.errors import SettingsError

EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The public key that every emulator has."""
EMULATOR = (
    f"AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};BlobEndpoint=http://127.0.0.1:10000/{EMULATOR_ACCOUNT}"
)


@dataclass(frozen=True, slots=True)
class Connection:
    account: str
    text: str = field(repr=False)
    endpoint: str | None = None
    key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)

    @property
    def uses_identity(self) -> bool:
        return not (self.key or self.sas_token)

    def require_encryption(self) -> None:
        """Raise `SettingsError` if a token would travel in plain text."""
        if self.uses_identity and self.endpoint and not self.endpoint.startswith("https://"):
            raise SettingsError(
                f"the endpoint of the account '{self.account}' would get a token without encryption",
                remedy="use https, or give the account's key",
            )

    @property
    def blob_endpoint(self) -> str:
        return self.endpoint or f"https://{self.account}.blob.core.windows.net"


def read_connection(text: str) -> Connection:
    values = _values(text)
    if values.get("usedevelopmentstorage", "").lower() == "true":
        text, values = EMULATOR, _values(EMULATOR)
    endpoint = values.get("blobendpoint", "").rstrip("/") or _endpoint(values)
    account = values.get("accountname") or (urlsplit(endpoint or "").hostname or "").partition(".")[0]
    key, sas_token = values.get("accountkey"), values.get("sharedaccesssignature")
    if not account or not (key or sas_token or values.get("blobendpoint")):  # without a key: a managed identity
        raise SettingsError(
            "AZURE_STORAGE_CONNECTION_STRING cannot be read",
            remedy="copy it from the storage account: AccountName=…;AccountKey=…;EndpointSuffix=core.windows.net",
        )
    return Connection(account, text, endpoint, key, sas_token)


def _values(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(";") if part]
    return {name.strip().lower(): value for name, _, value in pairs}


def _endpoint(values: dict[str, str]) -> str | None:
    suffix, account = values.get("endpointsuffix"), values.get("accountname")
    if not suffix or not account:
        return None
    return f"{values.get('defaultendpointsprotocol', 'https')}://{account}.blob.{suffix}"
