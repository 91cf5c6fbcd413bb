"""Backups that are damaged, or made by somebody who means harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geomill.backup.manifest import Manifest
from geomill.backup.metering import Silent
from geomill.backup.verification import read_manifest, verify
from geomill.errors import BackupInvalid, InvalidName
from geomill.storage.depot import FolderDepot
from tests.integration.backup.conftest import Place, check, repack, restore, rewritten

Change = Callable[[dict[str, Any]], None]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")


@pytest.mark.parametrize("damage", [flip, cut, lengthen, Path.unlink], ids=["changed", "cut", "longer", "gone"])
def test_any_file_that_is_not_as_it_was_is_told(backup: FolderDepot, damage: Callable[[Path], None]) -> None:
    files = [file for file in sorted(backup.root.rglob("*")) if file.is_file() and file.name != "manifest.json"]
    assert len(files) > 30
    damaged_files = 0
    for file in files:
        content = file.read_bytes()
        if not content:
            continue
        damage(file)
        verdict = check(backup)
        name = file.relative_to(backup.root).as_posix()
        assert any(name in problem for problem in verdict.problems), name
        damaged_files += 1
        file.write_bytes(content)
    assert check(backup).sound
    assert damaged_files > 30


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["changed", "cut", "gone"])
def test_a_damaged_manifest_is_no_backup(backup: FolderDepot, damage: Callable[[Path], None]) -> None:
    damage(backup.root / "manifest.json")
    if damage is cut:
        damage(backup.root / "manifest.json")  # the first byte was only the end of the line
    with pytest.raises(BackupInvalid):
        read_manifest(backup)


def test_every_changed_digit_of_the_manifest_is_noticed(backup: FolderDepot) -> None:
    file = backup.root / "manifest.json"
    text = file.read_text()
    place = text.index('"rows": ') + len('"rows": ')
    file.write_text(text[:place] + "7" + text[place:])
    with pytest.raises(BackupInvalid, match="does not have the hash that it names"):
        read_manifest(backup)


def test_another_backup_than_the_one_that_was_meant(backup: FolderDepot) -> None:
    digest = read_manifest(backup).digest
    rewritten(backup, lambda manifest: manifest.update(geomill_version="0"))
    assert read_manifest(backup).geomill_version == "0"
    with pytest.raises(BackupInvalid, match="is not the one with the SHA-256"):
        read_manifest(backup, digest)


def test_what_is_not_part_of_it_is_told(backup: FolderDepot) -> None:
    (backup.root / "notes.txt").write_text("mine")
    verdict = check(backup)
    assert (verdict.sound, verdict.extra) == (True, ["notes.txt"])


@pytest.mark.parametrize("damage", [flip, cut], ids=["changed", "cut"])
def test_rows_that_are_damaged_leave_the_databases_empty(
    backup: FolderDepot, target: Place, damage: Callable[[Path], None]
) -> None:
    file = backup.root / "inside" / "app.api_keys.copy.gz"
    content = file.read_bytes()
    damage(file)
    with pytest.raises(BackupInvalid, match=r"app\.api_keys"):
        restore(backup, target)
    assert target.rows("SELECT count(*) AS n FROM dagapp.dag_jobs") == [{"n": 0}]
    assert target.rows("SELECT count(*) AS n FROM pgstac.collections", outside=True) == [{"n": 0}]
    file.write_bytes(content)
    restore(backup, target)  # it can simply be run again
    assert target.rows("SELECT count(*) AS n FROM dagapp.dag_jobs") == [{"n": 1}]


def test_an_object_that_is_damaged_does_not_reach_its_zone(backup: FolderDepot, target: Place) -> None:
    flip(backup.root / "objects/bronze/uploads/große datei.bin")
    with pytest.raises(BackupInvalid, match="große datei"):
        restore(backup, target)
    assert [path for path in (target.data / "bronze").rglob("*") if path.is_file()] == []


# Somebody who means harm, and computes every hash anew


def first_path(path: str) -> Change:
    return lambda manifest: manifest["inside"]["tables"][0].update(path=path)


def feature(**fields: Any) -> Change:
    return lambda manifest: manifest["inside"]["features"][0].update(fields)


def feature_column(**fields: Any) -> Change:
    return lambda manifest: manifest["inside"]["features"][0]["columns"][0].update(fields)


@pytest.mark.parametrize(
    "change",
    [
        first_path("../../etc/passwd"),
        first_path("/etc/passwd"),
        first_path("a/../../b"),
        first_path("a\\..\\b"),
        feature(home="pgstac"),
        feature(home="public"),
        feature(columns=[]),
        feature(indexes=[{"name": "i", "method": "btree", "columns": ["nowhere"]}]),
        feature(indexes=[{"name": "i", "method": "btree (a); DROP TABLE x", "columns": ["ogc_fid"]}]),
        feature_column(type="integer); DROP SCHEMA app CASCADE; --"),
        feature_column(type="integer DEFAULT pg_sleep(10)"),
        feature_column(type="regclass"),
        feature_column(name="a\0b"),
        feature_column(name=""),
        lambda manifest: manifest["keys"][0].update(name="../../.ssh/authorized_keys"),
        lambda manifest: manifest["inside"]["sequences"][0].update(value=-1),
        lambda manifest: manifest.update(format=2),
        lambda manifest: manifest.update(surprise=True),
    ],
)
def test_a_manifest_that_means_harm_is_refused_before_anything_happens(backup: FolderDepot, change: Change) -> None:
    rewritten(backup, change)
    with pytest.raises(BackupInvalid, match="the manifest cannot be used"):
        read_manifest(backup)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"manifest": 1}', "[" * 100_000, '{"manifest": {}}', "\xff"])
def test_anything_else_in_its_place_is_refused(depot: FolderDepot, text: str) -> None:
    depot.root.mkdir()
    (depot.root / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BackupInvalid):
        read_manifest(depot)


@pytest.mark.parametrize(
    "line",
    [
        {"path": "../../outside"},
        {"container": ".."},
        {"zone": "postgres"},
        {"copied": True, "sha256": None},
        {"path": "a/../../../b"},
    ],
)
def test_objects_go_nowhere_but_into_their_zones(backup: FolderDepot, bare_target: Place, line: dict[str, Any]) -> None:
    whole = {"zone": "silver", "container": "cogs", "path": "a", "size": 1, "sha256": "ab" * 32, "copied": False}

    def change(manifest: dict[str, Any]) -> None:
        repack(backup, manifest["objects"], json.dumps({**whole, **line}).encode())

    rewritten(backup, change)
    with pytest.raises(BackupInvalid, match="cannot be used"):
        restore(backup, bare_target)
    assert bare_target.rows("SELECT to_regclass('dagapp.dag_jobs') AS t") == [{"t": None}]


@pytest.mark.parametrize("table", ["pgstac.items", "pg_catalog.pg_authid", "app.platforms; DROP TABLE x"])
def test_rows_go_nowhere_but_into_our_tables(backup: FolderDepot, target: Place, table: str) -> None:
    rewritten(backup, lambda manifest: manifest["inside"]["tables"][0].update(table=table))
    with pytest.raises(Exception, match="which this release does not know"):
        restore(backup, target)


def test_a_feature_table_of_a_name_that_means_harm_is_just_a_name(backup: FolderDepot, target: Place) -> None:
    name = 'x"; DROP SCHEMA app CASCADE; --'
    rewritten(backup, feature(name=name))
    restore(backup, target)
    assert {"name": name} in target.rows("SELECT relname AS name FROM pg_class WHERE relkind = 'r'")


def test_a_small_file_that_becomes_a_huge_one_ends_where_its_size_ends(backup: FolderDepot, target: Place) -> None:
    def change(manifest: dict[str, Any]) -> None:
        part = manifest["inside"]["tables"][0]
        repack(backup, part, b"\n" * 50_000_000)
        part["size"] = 1000

    rewritten(backup, change)
    verdict = verify(backup, read_manifest(backup), Silent())
    assert [problem.partition("' ")[2] for problem in verdict.problems] == [
        "holds more than the 1,000 bytes that the manifest names"
    ]


def test_an_index_without_an_end_of_line_is_refused(backup: FolderDepot, target: Place) -> None:
    rewritten(backup, lambda manifest: repack(backup, manifest["objects"], b"x" * 30_000_000))
    with pytest.raises(BackupInvalid, match="a line that is longer than"):
        restore(backup, target)


def test_links_in_a_backup_lead_nowhere(backup: FolderDepot, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    file = backup.root / "inside" / "app.api_keys.copy.gz"
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises(InvalidName, match="leads out of the backup"):
        check(backup)


def test_a_manifest_comes_back_as_it_went(backup: FolderDepot) -> None:
    manifest = read_manifest(backup)
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest
