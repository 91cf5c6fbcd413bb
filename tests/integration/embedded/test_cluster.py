"""The private cluster on the real server. Each test has a cluster of its own, except those that only look."""

import stat

import psycopg
import pytest

from geomill.embedded import Cluster, State
from geomill.errors import EmbeddedError


def ask(url: str, query: str = "SELECT current_user") -> object:
    with psycopg.connect(url, connect_timeout=60) as connection:
        return connection.execute(query).fetchone()[0]


def test_the_first_start_makes_the_cluster_and_later_ones_keep_it(make, data):
    cluster = make(data)
    assert cluster.status().state is State.ABSENT
    assert cluster.start() is True
    status = cluster.status()
    assert status.state is State.RUNNING
    assert status.folder == data / "postgres"
    assert status.version >= 15
    assert ask(cluster.url(), "SELECT current_database()") == "geomill"
    with psycopg.connect(cluster.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    assert cluster.stop() is True
    assert cluster.status().state is State.STOPPED
    assert cluster.stop() is False
    cluster.start()
    assert cluster.status().port == status.port
    assert ask(cluster.url(), "SELECT answer FROM kept") == 42


def test_a_second_start_changes_nothing(running):
    before = running.status()
    assert running.start() is False
    assert Cluster(before.folder.parent).start() is False
    assert running.status() == before


def test_a_context_stops_what_it_started_and_no_more(running, data_with_cluster):
    with Cluster(running.status().folder.parent):
        pass
    assert running.status().state is State.RUNNING
    with Cluster(data_with_cluster, settings={"fsync": "off"}) as own:
        assert ask(own.url()) == "geomill"
    assert own.status().state is State.STOPPED


@pytest.mark.parametrize("tcp", [False, True])
def test_the_role_authenticates_over_socket_and_tcp(running, tcp):
    assert ask(running.url(tcp=tcp)) == "geomill"
    encrypted = "SELECT rolpassword FROM pg_authid WHERE rolname = 'geomill'"
    assert ask(running.url(tcp=tcp), encrypted).startswith("SCRAM-SHA-256$")
    assert ask(running.url("postgres", tcp=tcp), "SELECT current_database()") == "postgres"


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_wrong_password_is_refused(running, tcp, password):
    parameters = psycopg.conninfo.conninfo_to_dict(running.url(tcp=tcp))
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(**parameters | {"password": password, "connect_timeout": 60})


def test_nobody_is_trusted(running):
    methods = ask(running.url(), "SELECT array_agg(DISTINCT auth_method) FROM pg_hba_file_rules")
    assert methods == ["scram-sha-256"]


def test_secrets_are_closed_to_others(running):
    folder = running.status().folder
    assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600
    for name in ("pgdata", "socket", "log"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700


def test_names_of_databases_are_encoded(running):
    name = "a b/ü?&"
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    assert ask(running.url(name), "SELECT current_database()") == name
    assert ask(running.url(name, tcp=True), "SELECT current_database()") == name


def test_settings_are_ours_then_the_callers_then_the_users(make, data_with_cluster):
    cluster = make(data_with_cluster, work_mem="5MB", max_connections="50")
    cluster.start()
    assert ask(cluster.url(), "SHOW work_mem") == "5MB"
    assert ask(cluster.url(), "SHOW wal_level") == "minimal"
    assert ask(cluster.url(), "SHOW server_encoding") == "UTF8"
    cluster.stop()
    (data_with_cluster / "postgres" / "postgresql.local.conf").write_text("work_mem = '6MB'\n")
    cluster.start()
    assert ask(cluster.url(), "SHOW work_mem") == "6MB"
    assert ask(cluster.url(), "SHOW max_connections") == "50"


def test_postgis_can_be_had(running):
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS postgis")
    assert ask(running.url(), "SELECT ST_AsText(ST_Point(1, 2))") == "POINT(1 2)"


def test_a_stopped_cluster_has_no_url(data):
    with pytest.raises(EmbeddedError, match="is not running; start it with"):
        Cluster(data).url()
    assert not data.exists()
