"""Azurite as an account that is used without its key: with tokens and user delegation signatures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from geomill.identity import tokens
from geomill.sdk import Storage, Zone
from geomill.storage import StorageRecipe
from geomill.storage.connection_string import EMULATOR_ACCOUNT
from geomill.storage.recipe import AzureAccess
from tests.identity_endpoint import IdentityEndpoint, identity_endpoint
from tests.integration.storage.certificates import server_certificate
from tests.integration.storage.servers import azurite, make_container


@dataclass(frozen=True)
class IdentityAccount:
    storage: Storage
    blob_endpoint: str
    endpoint: IdentityEndpoint


@contextmanager
def identity_account(folder: Path, containers: Sequence[str], prefix: str = "") -> Iterator[IdentityAccount]:
    certificate = server_certificate(folder)
    with (
        azurite(folder, certificate) as blob_endpoint,
        identity_endpoint() as endpoint,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in (certificate.environ | endpoint.environ).items():
            patch.setenv(name, value)
        for container in containers:
            make_container(blob_endpoint, container)
        tokens._credential.cache_clear()
        zones = {zone: f"az://{EMULATOR_ACCOUNT}/{prefix}{zone}" for zone in Zone}
        text = f"AccountName={EMULATOR_ACCOUNT};BlobEndpoint={blob_endpoint}"
        recipe = StorageRecipe(zones=zones, azure=AzureAccess(connection_strings=(text,), client_id="an-identity"))
        yield IdentityAccount(Storage(recipe), blob_endpoint, endpoint)
        tokens._credential.cache_clear()
