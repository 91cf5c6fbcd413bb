"""Azure Blob with a managed identity: the real azure-identity, obstore and GDAL against Azurite over TLS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import numpy as np
import pytest
import rasterio
from rasterio.io import MemoryFile

from geomill.errors import SettingsError, StorageDenied, StorageUnavailable
from geomill.identity import tokens
from geomill.raster.opening import StoreSession, environment
from geomill.sdk import ObjectName, Storage, Zone
from geomill.storage import StorageRecipe, delegation
from geomill.storage.delegation import Delegations, fetch_key
from geomill.storage.recipe import AzureAccess
from tests.integration.storage.identity import IdentityAccount, identity_account

PICTURE = ObjectName(Zone.SILVER, "rasters", "a/b c.tif")
STORAGE = "https://storage.azure.com"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityAccount]:
    with identity_account(tmp_path_factory.mktemp("azurite"), ("rasters", "others")) as account:
        account.storage.sync.put_bytes(PICTURE, picture())
        yield account


def picture() -> bytes:
    with MemoryFile() as memory:
        profile = {"driver": "GTiff", "width": 300, "height": 300, "count": 1, "dtype": "uint8", "crs": "EPSG:4326"}
        with memory.open(**profile, transform=rasterio.Affine(0.1, 0, 10, 0, -0.1, 50)) as dataset:
            dataset.write(np.full((1, 300, 300), 7, "uint8"))
        return bytes(memory.read())


def test_objects_are_written_and_read_with_tokens_which_are_renewed(account: IdentityAccount) -> None:
    name, storage = ObjectName(Zone.BRONZE, "others", "x"), Storage(account.storage.recipe).sync
    storage.put_bytes(name, b"content", cool=True)
    assert storage.read(name) == b"content"
    assert [info.size for info in storage.list(Zone.BRONZE, "others")] == [7]
    request = account.endpoint.requests[-1]
    assert (request["resource"], request["client_id"]) == (STORAGE, "an-identity")
    asked, account.endpoint.life = len(account.endpoint.requests), 60
    try:
        short = Storage(StorageRecipe(account.storage.recipe.zones, azure=account.storage.recipe.azure)).sync
        tokens._credential.cache_clear()
        assert short.read(name) == b"content"
        time.sleep(0.2)  # obstore uses a token at least for a tenth of a second
        assert short.read(name) == b"content"
    finally:
        account.endpoint.life = 86_400
        tokens._credential.cache_clear()
    assert len(account.endpoint.requests) >= asked + 2


def test_gdal_reads_with_a_signature_and_only_in_its_container(account: IdentityAccount) -> None:
    path = account.storage.gdal_path(PICTURE)
    with environment(account.storage, Zone.SILVER, "rasters"), rasterio.open(path) as dataset:
        assert (dataset.read() == 7).all()
    options = account.storage.gdal_options(Zone.SILVER, "others")
    assert "AZURE_STORAGE_ACCESS_TOKEN" not in options
    with (
        rasterio.Env(session=StoreSession(options), CPL_VSIL_CURL_NON_CACHED="/vsiaz/"),
        pytest.raises(rasterio.RasterioIOError),
    ):
        rasterio.open(account.storage.gdal_path(PICTURE))


def test_a_signature_cannot_write_or_delete(account: IdentityAccount) -> None:
    signature = account.storage.gdal_options(Zone.SILVER, "rasters")["AZURE_STORAGE_SAS_TOKEN"]
    url = f"{account.blob_endpoint}/rasters/silver/a/b%20c.tif?{signature}"
    headers = {"x-ms-version": "2020-12-06", "x-ms-blob-type": "BlockBlob"}
    assert httpx.get(url, headers=headers).status_code == 200
    assert httpx.put(url, headers=headers, content=b"x").status_code == 403
    assert httpx.delete(url, headers=headers).status_code == 403


def test_gdal_reads_several_containers_with_the_token(account: IdentityAccount) -> None:
    options = account.storage.gdal_options(Zone.SILVER)
    assert "AZURE_STORAGE_SAS_TOKEN" not in options
    with rasterio.Env(session=StoreSession(options)), rasterio.open(account.storage.gdal_path(PICTURE)) as dataset:
        assert (dataset.read() == 7).all()


def test_a_signature_lasts_for_a_day_and_its_key_is_renewed_before(
    account: IdentityAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    delegations = Delegations("an-identity", 5)

    def begun() -> str:
        fields = parse_qs(delegations.signature("devstoreaccount1", account.blob_endpoint, "rasters"))
        life = datetime.fromisoformat(fields["se"][0]) - datetime.now(UTC)
        assert timedelta(hours=23) < life <= timedelta(hours=24)
        return fields["skt"][0]

    first = begun()
    time.sleep(1.1)  # Azure counts in seconds
    assert begun() == first
    monkeypatch.setattr(delegation, "RENEWED_BEFORE", timedelta(hours=25))
    assert begun() > first


def test_an_expired_signature_is_refused(account: IdentityAccount) -> None:
    yesterday = datetime.now(UTC) - timedelta(hours=25)
    token = account.endpoint.issue({"resource": STORAGE})["access_token"]
    key = fetch_key("devstoreaccount1", account.blob_endpoint, token, yesterday, 5)
    url = f"{account.blob_endpoint}/rasters/silver/a/b%20c.tif?{key.signature('devstoreaccount1', 'rasters')}"
    assert httpx.get(url, headers={"x-ms-version": "2020-12-06"}).status_code == 403


def test_while_the_account_gives_no_key_the_last_one_does(
    account: IdentityAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    delegations = Delegations("an-identity", 5)
    signature = delegations.signature("devstoreaccount1", account.blob_endpoint, "rasters")
    monkeypatch.setattr(delegation, "RENEWED_BEFORE", timedelta(hours=25))
    assert delegations.signature("devstoreaccount1", "https://127.0.0.1:1", "rasters") == signature
    with pytest.raises(StorageUnavailable, match="gives no key to read with: ConnectError"):
        Delegations("an-identity", 5).signature("devstoreaccount1", "https://127.0.0.1:1", "rasters")


def test_a_refused_identity_is_told_with_the_role_that_it_needs(account: IdentityAccount) -> None:
    with pytest.raises(StorageDenied, match="Storage Blob Delegator") as caught:
        fetch_key("devstoreaccount1", account.blob_endpoint, "no-token", datetime.now(UTC), 5)
    assert "no-token" not in str(caught.value)


def test_without_a_token_the_store_says_so(account: IdentityAccount) -> None:
    recipe = account.storage.recipe
    access = AzureAccess(recipe.azure.connection_strings, client_id="another")
    storage = Storage(StorageRecipe(recipe.zones, azure=access, retry_seconds=0))
    account.endpoint.away = True
    try:
        for use in (lambda: storage.sync.read(PICTURE), lambda: storage.gdal_options(Zone.SILVER, "rasters")):
            with pytest.raises(StorageUnavailable, match=r"no token.*AZURE_CLIENT_ID") as caught:
                use()
            assert caught.value.code == "storage_unavailable"  # which is tried again for a quarter of an hour
    finally:
        account.endpoint.away = False


def test_a_token_is_not_sent_without_encryption(tmp_path: Path) -> None:
    text = "AccountName=devstoreaccount1;BlobEndpoint=http://127.0.0.1:1/devstoreaccount1"
    recipe = StorageRecipe({"silver": "az://devstoreaccount1"}, azure=AzureAccess(connection_strings=(text,)))
    for use in (lambda s: s.sync.read(PICTURE), lambda s: s.gdal_options(Zone.SILVER)):
        with pytest.raises(SettingsError, match="https"):
            use(Storage(recipe))


@pytest.mark.parametrize("cool", [True, False])
def test_a_cool_object_is_in_the_cool_tier(account: IdentityAccount, cool: bool) -> None:
    name = ObjectName(Zone.SILVER, "others", f"tier-{cool}")
    account.storage.sync.put_bytes(name, b"x", cool=cool)
    token = account.endpoint.issue({"resource": STORAGE})["access_token"]
    headers = {"Authorization": f"Bearer {token}", "x-ms-version": "2020-12-06"}
    answer = httpx.head(f"{account.blob_endpoint}/others/silver/tier-{cool}", headers=headers)
    assert answer.headers["x-ms-access-tier"] == ("Cool" if cool else "Hot")
