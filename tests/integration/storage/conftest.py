from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.storage import Storage, StorageRecipe
from geomill.storage.connection_string import EMULATOR_ACCOUNT, EMULATOR_KEY
from geomill.storage.recipe import AzureAccess, S3Access
from tests.integration.storage.servers import azurite, make_bucket, make_container, moto

CONTAINER = "rasters"
OTHER = "others"
KINDS = ("folder", "azure", "s3")


@pytest.fixture(scope="session")
def azure_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with azurite(tmp_path_factory.mktemp("azurite")) as endpoint:
        for container in (CONTAINER, OTHER):
            make_container(endpoint, container)
        yield endpoint


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("moto")) as endpoint:
        make_bucket(endpoint, "geo-data")
        yield endpoint


def azure_recipe(endpoint: str, prefix: str = "") -> StorageRecipe:
    text = f"AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};BlobEndpoint={endpoint}"
    zones = {zone: f"az://{EMULATOR_ACCOUNT}/{prefix}{zone}" for zone in Zone}
    return StorageRecipe(zones=zones, azure=AzureAccess(connection_strings=(text,)))


def s3_recipe(endpoint: str, prefix: str = "") -> StorageRecipe:
    access = S3Access(key_id="id", secret="secret", region="us-east-1", endpoint=endpoint)
    return StorageRecipe(zones={zone: f"s3://geo-data/{prefix}{zone}" for zone in Zone}, s3=access)


def recipe_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> StorageRecipe:
    """Zones that no other test has."""
    prefix = f"{uuid4().hex[:8]}/"
    if kind == "folder":
        return StorageRecipe.in_folder(folder / "zones")
    if kind == "azure":
        return azure_recipe(request.getfixturevalue("azure_endpoint"), prefix)
    return s3_recipe(request.getfixturevalue("s3_endpoint"), prefix)


@pytest.fixture(params=KINDS)
def recipe(request: pytest.FixtureRequest, tmp_path: Path) -> StorageRecipe:
    return recipe_of(request.param, request, tmp_path)


@pytest.fixture
def storage(recipe: StorageRecipe) -> Storage:
    return Storage(recipe)


@pytest.fixture
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Each zone in another kind of store."""
    folder, azure, s3 = (recipe_of(kind, request, tmp_path) for kind in KINDS)
    zones = {"bronze": folder.zones["bronze"], "silver": azure.zones["silver"], "external": s3.zones["external"]}
    return Storage(replace(folder, zones=zones, azure=azure.azure, s3=s3.s3))


def bronze(path: str) -> ObjectName:
    return ObjectName(Zone.BRONZE, CONTAINER, path)


def silver(path: str) -> ObjectName:
    return ObjectName(Zone.SILVER, CONTAINER, path)
