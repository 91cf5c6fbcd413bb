import os
import stat
from pathlib import Path

import pytest

from geomill.embedded import place as place_module
from geomill.embedded.account import Account
from geomill.embedded.place import DataPlace, write
from geomill.errors import EmbeddedError

CALLER = Account("caller", os.geteuid(), os.getegid())


@pytest.fixture
def place(tmp_path) -> DataPlace:
    (tmp_path / "postgres").mkdir()
    return DataPlace.of(tmp_path)


def test_everything_lies_in_one_folder(place, tmp_path):
    assert place.control == place.home == tmp_path / "postgres"
    assert place.pgdata == tmp_path / "postgres" / "pgdata"


def test_a_pointer_leads_to_the_cluster_of_a_root_caller(place, tmp_path):
    write(place.control / "location", "/var/lib/geomill/x")
    assert DataPlace.of(tmp_path).pgdata == Path("/var/lib/geomill/x/pgdata")


def test_asking_for_the_place_writes_nothing(tmp_path):
    place = DataPlace.of(tmp_path / "absent")
    place.require_writable()
    assert place.password() == ""
    assert place.port() is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_data_folder_is_refused(tmp_path):
    (tmp_path / "data").touch()
    with pytest.raises(EmbeddedError, match="is not a folder"):
        DataPlace.of(tmp_path / "data").require_writable()


def test_the_password_is_random_private_and_kept(place, tmp_path):
    password = place.make_password()
    file = place.control / "password"
    assert len(password) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert place.make_password() == password
    other = DataPlace(tmp_path / "other", tmp_path / "other")
    other.control.mkdir()
    assert other.make_password() != password


def test_the_port_is_kept(place):
    place.keep_port(5433)
    assert place.port() == 5433
    (place.control / "port").write_text("nonsense")
    assert place.port() is None


def test_a_write_leaves_no_draft(place):
    write(place.control / "port", "1")
    assert [path.name for path in place.control.iterdir()] == ["port"]


def test_a_failed_write_leaves_the_old_file_and_no_draft(place, monkeypatch):
    write(place.control / "port", "1")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(place_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(place.control / "port", "2")
    assert place.port() == 1
    assert [path.name for path in place.control.iterdir()] == ["port"]


def test_a_short_folder_holds_the_socket_itself(tmp_path, monkeypatch):
    place = DataPlace(tmp_path, tmp_path)
    monkeypatch.setattr(place_module, "LONGEST_SOCKET_FOLDER", len(str(tmp_path / "socket")))
    assert place.socket_folder(CALLER) == tmp_path / "socket"


def test_a_long_folder_gets_a_private_one_for_its_socket(tmp_path):
    deep = tmp_path / ("long" * 20)
    deep.mkdir()
    place = DataPlace(deep, deep)
    folder = place.socket_folder(CALLER)
    try:
        assert len(str(folder)) < 85
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert place.socket_folder(CALLER) == folder
    finally:
        folder.rmdir()
    again = place.socket_folder(CALLER)
    again.rmdir()
    assert again != folder, "one that was cleaned away is made anew"


def test_the_lock_is_held_against_others(place, monkeypatch):
    monkeypatch.setattr(place_module, "LOCK_SECONDS", 0.1)
    with place.locked(), pytest.raises(EmbeddedError, match="another process"), place.locked():
        pass
    with place.locked():
        pass
