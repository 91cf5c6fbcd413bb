"""From settings to a recipe, which travels and keeps its secrets."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import NotFoundError, SettingsError, StorageUnavailable
from geomill.settings import Settings, StorageSettings, variables
from geomill.storage import NO_STORAGE, Storage, StorageRecipe
from geomill.storage.connection_string import EMULATOR_KEY, read_connection

SECRET = "c2VjcmV0"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in variables():
        monkeypatch.delenv(name, raising=False)

    def read_recipe(**environ: str) -> StorageRecipe:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return StorageRecipe.of(Settings({}).storage, tmp_path)

    return read_recipe


def test_zones_are_folders_of_the_data_folder_by_default(read, tmp_path: Path) -> None:
    assert read().zones == {zone: str(tmp_path / zone) for zone in ("bronze", "silver", "external")}
    assert read() == StorageRecipe.of(StorageSettings(), tmp_path)
    assert read().zones == StorageRecipe.in_folder(tmp_path).zones


def test_each_zone_may_lie_elsewhere(read) -> None:
    recipe = read(GEOMILL_BRONZE="az://geodata/in", GEOMILL_SILVER="s3://geo-data", GEOMILL_EXTERNAL="public")
    assert recipe.zones["bronze"] == "az://geodata/in"
    assert recipe.zones["silver"] == "s3://geo-data"
    assert recipe.zones["external"] == str(Path("public").absolute())


everything = {
    "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=one;AccountKey={SECRET} AccountName=two;AccountKey={SECRET}",
    "AZURE_STORAGE_KEY": SECRET,
    "AZURE_STORAGE_SAS_TOKEN": SECRET,
    "AZURE_CLIENT_ID": "an-identity",
    "AWS_ACCESS_KEY_ID": "an-id",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": SECRET,
    "AWS_REGION": "eu-central-1",
    "AWS_ENDPOINT_URL": "http://minio:9000",
}


def test_it_travels_as_json_and_as_a_pickle(read) -> None:
    recipe = read(**everything)
    assert len(recipe.azure.connection_strings) == 2
    assert recipe.s3.endpoint == "http://minio:9000"
    assert StorageRecipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe
    assert pickle.loads(pickle.dumps(Storage(recipe))).recipe == recipe


def test_no_repr_shows_a_secret(read) -> None:
    recipe = read(GEOMILL_BRONZE="az://one", GEOMILL_SILVER="s3://geo-data", **everything)
    storage = Storage(recipe)
    shown = [repr(recipe), repr(storage), repr(read_connection(recipe.azure.connection_strings[0]))]
    shown += [repr(storage.gdal_options(zone)) for zone in Zone] + [repr(Settings({}).storage)]
    assert SECRET not in " ".join(shown)


@pytest.mark.parametrize("text", [f"AccountKey={SECRET}", "AccountName=x", SECRET, f"DefaultEndpoint=https;{SECRET}"])
def test_a_connection_string_that_cannot_be_read_is_not_shown(read, text: str) -> None:
    with pytest.raises(SettingsError, match="AZURE_STORAGE_CONNECTION_STRING cannot be read") as caught:
        read(AZURE_STORAGE_CONNECTION_STRING=text)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "account", "endpoint"),
    [
        (
            f"DefaultEndpointsProtocol=https;AccountName=geo;AccountKey={SECRET}==;EndpointSuffix=core.windows.net",
            "geo",
            "https://geo.blob.core.windows.net",
        ),
        (f"AccountName=geo;AccountKey={SECRET};BlobEndpoint=http://h:1/geo/", "geo", "http://h:1/geo"),
        ("AccountName=geo;BlobEndpoint=https://geo.private.x", "geo", "https://geo.private.x"),
        ("BlobEndpoint=https://geo.blob.x/;SharedAccessSignature=sv=1&sig=x", "geo", "https://geo.blob.x"),
        ("UseDevelopmentStorage=true", "devstoreaccount1", "http://127.0.0.1:10000/devstoreaccount1"),
    ],
)
def test_connection_strings(text: str, account: str, endpoint: str) -> None:
    connection = read_connection(text)
    assert (connection.account, connection.endpoint) == (account, endpoint)
    assert connection.key in (None, SECRET, SECRET + "==", EMULATOR_KEY)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GEOMILL_BRONZE", f"s3://id:{SECRET}@bucket"),
        ("GEOMILL_SILVER", f"AccountName=x;AccountKey={SECRET}"),
        ("AWS_ENDPOINT_URL", f"http://id:{SECRET}@host"),
        ("GEOMILL_STORAGE_RETRY_SEC", "-1"),
    ],
)
def test_a_wrong_setting_is_named_and_its_secret_is_not(read, name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(**{name: value})
    assert caught.value.problems[0].where in (name, "AWS_ENDPOINT_URL_S3")
    assert SECRET not in f"{caught.value} {caught.value.problems}"


def test_credentials_that_cannot_be_used_are_not_shown(read) -> None:
    storage = Storage(read(GEOMILL_BRONZE="az://geodata", AZURE_STORAGE_KEY=SECRET[:-1] + "!"))
    with pytest.raises(SettingsError, match="the settings of az://geodata cannot be used") as caught:
        storage.sync.stat(ObjectName(Zone.BRONZE, "rasters", "x"))
    assert SECRET[:-1] not in str(caught.value)


def test_without_storage_each_use_says_so() -> None:
    with pytest.raises(NotFoundError, match="the zone 'bronze' has no location here; set GEOMILL_BRONZE"):
        NO_STORAGE.sync.stat(ObjectName(Zone.BRONZE, "rasters", "x"))


def test_a_folder_that_is_not_ours_is_not_made(read, tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name("a-mount-that-is-not-there")
    storage = Storage(read(GEOMILL_BRONZE=str(elsewhere)))
    with pytest.raises(StorageUnavailable, match="does not exist; mount it or create it"):
        storage.sync.put_bytes(ObjectName(Zone.BRONZE, "rasters", "x"), b"")
    assert not elsewhere.exists()


def test_paths_and_options_for_gdal(read, tmp_path: Path) -> None:
    recipe = read(GEOMILL_BRONZE="az://one/in", GEOMILL_SILVER="s3://geo-data/out", **everything)
    storage = Storage(recipe)
    assert storage.gdal_path(ObjectName(Zone.BRONZE, "rasters", "a/b.tif")) == "/vsiaz/rasters/in/a/b.tif"
    assert storage.gdal_path(ObjectName(Zone.SILVER, "rasters", "a/b.tif")) == "/vsis3/geo-data/out/rasters/a/b.tif"
    local = storage.gdal_path(ObjectName(Zone.EXTERNAL, "rasters", "a/b.tif"))
    assert local == str(tmp_path / "external" / "rasters" / "a" / "b.tif")
    assert storage.gdal_options(Zone.EXTERNAL) == {}
    assert storage.gdal_options(Zone.BRONZE)["AZURE_STORAGE_CONNECTION_STRING"] == recipe.azure.connection_strings[0]
    silver = storage.gdal_options(Zone.SILVER)
    expected = {
        "AWS_ACCESS_KEY_ID": "an-id",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": SECRET,
        "AWS_REGION": "eu-central-1",
        "AWS_S3_ENDPOINT": "minio:9000",
        "AWS_HTTPS": "NO",
        "AWS_VIRTUAL_HOSTING": "FALSE",
    }
    assert {name: silver[name] for name in expected} == expected


def test_an_account_without_a_connection_string_uses_the_key_then_the_token_then_its_identity(read) -> None:
    settings = dict(everything)
    del settings["AZURE_STORAGE_CONNECTION_STRING"]
    options = Storage(read(GEOMILL_BRONZE="az://one", **settings)).gdal_options(Zone.BRONZE)
    assert options["AZURE_STORAGE_ACCESS_KEY"] == SECRET
    assert "AZURE_STORAGE_SAS_TOKEN" not in options
    assert options["AZURE_STORAGE_ACCOUNT"] == "one"
