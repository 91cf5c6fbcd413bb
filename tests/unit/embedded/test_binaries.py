from pathlib import Path

import pytest

from geomill.embedded import binaries
from geomill.embedded.binaries import Binaries, choose, inspect, parse_major
from geomill.errors import EmbeddedError


def server(major: int, *, postgis: bool = True) -> Binaries:
    return Binaries(Path(f"/opt/pg{major}/bin"), major, postgis)


def fake_installation(folder: Path, version: str) -> Path:
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for name in ("initdb", "pg_ctl", "postgres"):
        (programs / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (programs / name).chmod(0o755)
    return programs


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", 15),
        ("postgres (PostgreSQL) 18beta1", 18),
        ("postgres (PostgreSQL) 9.6.24", 9),
        ("", None),
        ("command not found", None),
    ],
)
def test_the_major_version_is_read_from_the_programs_own_words(text, major):
    assert parse_major(text) == major


def test_the_newest_server_wins():
    assert choose([server(15), server(17), server(16)]).major == 17


def test_a_server_with_postgis_wins_over_a_newer_one_without():
    assert choose([server(15), server(17, postgis=False)]).major == 15


def test_the_version_of_an_existing_cluster_wins_over_a_newer_one():
    assert choose([server(15), server(17)], major=15).major == 15


def test_servers_that_are_too_old_do_not_count():
    with pytest.raises(EmbeddedError, match="no PostgreSQL server of version 15 or newer"):
        choose([server(14)])


def test_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setattr(binaries.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(binaries, "_output", lambda *_: "postgresql-15-postgis-3 - a\npostgresql-17-postgis-3 - b")
    with pytest.raises(EmbeddedError) as raised:
        choose([])
    assert raised.value.remedy == "install it as root: apt-get install postgresql-17-postgis-3"


def test_a_system_without_a_known_package_manager_gets_the_debian_name_as_a_hint(monkeypatch):
    monkeypatch.setattr(binaries.shutil, "which", lambda _: None)
    with pytest.raises(EmbeddedError, match="postgresql-15-postgis-3"):
        choose([])


def test_a_server_without_postgis_names_the_package_of_its_version(monkeypatch):
    monkeypatch.setattr(binaries.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    with pytest.raises(EmbeddedError, match=r"PostgreSQL 16 in .* has no PostGIS; .*postgresql-16-postgis-3"):
        choose([server(16, postgis=False)])


def test_a_cluster_of_another_version_names_both_versions_and_the_ways_out():
    with pytest.raises(EmbeddedError) as raised:
        choose([server(16), server(15)], major=17)
    assert raised.value.message == "the cluster needs PostgreSQL 17, but PostgreSQL 15, 16 is installed"
    assert "pg_upgrade" in raised.value.remedy


def test_a_folder_is_inspected_for_programs_and_postgis(tmp_path):
    programs = fake_installation(tmp_path, "99.1")
    assert inspect(programs) == Binaries(programs, 99, postgis=False)
    extension = tmp_path / "share" / "postgresql" / "extension"
    extension.mkdir(parents=True)
    (extension / "postgis.control").touch()
    assert inspect(programs) == Binaries(programs, 99, postgis=True)


def test_a_folder_with_only_client_programs_is_none(tmp_path):
    (tmp_path / "psql").touch(mode=0o755)
    assert inspect(tmp_path) is None


def test_a_program_that_does_not_run_is_none(tmp_path):
    programs = fake_installation(tmp_path, "17.1")
    (programs / "postgres").write_text("#!/nonexistent/interpreter\n")
    assert inspect(programs) is None


def test_this_system_has_a_fit_server():
    installed = binaries.find()
    assert installed.major >= 15
    assert Path(installed.initdb).exists()
    assert Path(installed.pg_ctl).exists()
    assert Path(installed.postgres).exists()
