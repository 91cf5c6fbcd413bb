"""Backups in object stores, and of zones that lie in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from geomill.backup.zones import Objects
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import BackupInvalid, InvalidName, StorageUnavailable
from geomill.storage import StorageRecipe, SyncStorage
from geomill.storage.connection_string import EMULATOR_ACCOUNT, EMULATOR_KEY
from geomill.storage.depot import Depot, FolderDepot, open_depot
from geomill.storage.recipe import AzureAccess, S3Access
from tests.integration.backup.conftest import Place, back_up, check, restore
from tests.integration.serve.stac.conftest import FILE
from tests.integration.storage.servers import azurite, make_bucket, make_container, moto


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageRecipe]:
    """Real servers of Azure Blob and S3."""
    with azurite(tmp_path_factory.mktemp("azurite")) as azure, moto(tmp_path_factory.mktemp("moto")) as s3:
        for container in ("backups", "cogs", "uploads"):
            make_container(azure, container)
        make_bucket(s3, "geo-data")
        text = f"AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};BlobEndpoint={azure}"
        yield StorageRecipe(
            azure=AzureAccess(connection_strings=(text,)),
            s3=S3Access(key_id="id", secret="secret", region="us-east-1", endpoint=s3),
        )


@pytest.fixture(params=["az", "s3"])
def far(request: pytest.FixtureRequest, stores: StorageRecipe) -> Depot:
    place = f"az://{EMULATOR_ACCOUNT}/backups" if request.param == "az" else "s3://geo-data"
    return open_depot(f"{place}/{uuid4().hex}/of monday", stores)


def test_there_and_back(source: Place, bare_target: Place, far: Depot) -> None:
    back_up(source, far)
    assert check(far).sound
    objects, databases = restore(far, bare_target)
    assert (objects.written, objects.missing) == (5, [])
    assert databases.inside.different == 0
    assert bare_target.storage.read(ObjectName(Zone.BRONZE, "uploads", "große datei.bin")) == FILE * 900


def break_off(depot: Depot, part: bytes) -> None:
    with depot.writing("broken") as sink:
        sink.write(part)
        raise BackupInvalid("in the middle")


def test_large_files_come_in_parts_and_what_breaks_off_is_not_there(far: Depot) -> None:
    part = bytes(range(256)) * 4096
    with far.writing("large") as sink:
        for _ in range(20):
            sink.write(part)
    assert b"".join(far.reading("large")) == part * 20
    with pytest.raises(BackupInvalid):
        break_off(far, part)
    assert list(far.paths()) == ["large"]


def test_zones_in_stores_are_listed_with_hashes_and_copied_where_asked(
    source: Place, target: Place, stores: StorageRecipe, depot: FolderDepot, tmp_path: Path
) -> None:
    prefix = uuid4().hex
    zones = {
        "bronze": f"az://{EMULATOR_ACCOUNT}/{prefix}",
        "silver": f"s3://geo-data/{prefix}",
        "external": str(source.data / "external"),
    }
    far = SyncStorage(replace(stores, zones=zones, data=str(source.data)))
    for zone, container in ((Zone.BRONZE, "uploads"), (Zone.SILVER, "cogs")):
        for info in source.storage.list(zone, container):
            far.put_bytes(info.name, source.storage.read(info.name))
    manifest = back_up(replace(source, storage=far), depot)
    assert (manifest.objects.objects, manifest.objects.copied, manifest.objects.missing) == (5, 0, 0)
    objects, _ = restore(depot, replace(target, storage=far))
    assert (objects.unchanged, objects.written, objects.missing) == (5, 0, [])

    copies = FolderDepot(tmp_path / "copies")
    assert back_up(replace(source, storage=far), copies, Objects.COPY).objects.copied == 5
    assert check(copies).sound


@pytest.mark.parametrize("text", ["", "az://account", "ftp://x/y", "s3://", "az://account/UPPER/x"])
def test_what_is_no_place_for_a_backup(stores: StorageRecipe, text: str) -> None:
    with pytest.raises(InvalidName):
        open_depot(text, stores)


def test_a_store_that_does_not_answer(stores: StorageRecipe) -> None:
    gone = replace(stores, s3=replace(stores.s3, endpoint="http://127.0.0.1:9"), retry_seconds=0.1)
    with pytest.raises(StorageUnavailable):
        check(open_depot("s3://geo-data/x", gone))
