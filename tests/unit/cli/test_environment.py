"""The environment that `geomill up` gives to each process."""

from __future__ import annotations

import pytest

from geomill.cli.environment import NEEDS, Databases, environment
from geomill.settings import ClientSettings, DatabaseSettings, Settings, variables

DATABASES = Databases("engine", "gateway", "loader", "reader", "exporter", "external")
EVERYTHING = {name: f"value of {name}" for name in variables()}
OTHERS = {"PATH": "/bin", "PGPASSWORD": "secret", "PGSSLROOTCERT": "/ca.pem", "HOME": "/root"}
SECRETS = {"GEOMILL_CALLBACK_SECRET": {"orchestrator"}, "GEOMILL_LINK_SECRET": {"gateway"}, "GEOMILL_KEY": set()}


def environment_of(kind: str) -> dict[str, str]:
    return environment(kind, {**EVERYTHING, **OTHERS}, DATABASES, {"GEOMILL_DATA": "/data"})


def test_every_concern_is_somebody_s() -> None:
    """A new concern must be given to the processes that read it; otherwise none gets it."""
    needed_concerns = {concern for concerns in NEEDS.values() for concern in concerns}
    assert needed_concerns == set(Settings.CONCERNS) - {DatabaseSettings, ClientSettings}


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_told_to_who_needs_it(secret: str) -> None:
    assert {kind for kind in NEEDS if secret in environment_of(kind)} == SECRETS[secret]


def test_each_process_is_told_of_its_own_databases() -> None:
    urls = {
        kind: {name: url for name, url in environment_of(kind).items() if name.endswith("DATABASE_URL")}
        for kind in NEEDS
    }
    assert urls == {
        "orchestrator": {"GEOMILL_DATABASE_URL": "engine"},
        "worker": {
            "GEOMILL_DATABASE_URL": "engine",
            "GEOMILL_LOADER_DATABASE_URL": "loader",
            "GEOMILL_EXTERNAL_DATABASE_URL": "exporter",
        },
        "gateway": {"GEOMILL_DATABASE_URL": "gateway", "GEOMILL_READER_DATABASE_URL": "reader"},
        "external": {"GEOMILL_EXTERNAL_DATABASE_URL": "external"},
    }


def test_the_external_server_is_told_of_nothing_inside() -> None:
    environ = environment_of("external")
    assert not {"GEOMILL_DATA", "GEOMILL_BRONZE", "GEOMILL_SILVER", "PGPASSWORD"} & set(environ)
    assert environ["PGSSLROOTCERT"] == "/ca.pem"
    assert environment_of("worker")["GEOMILL_DATA"] == "/data"


def test_what_is_not_ours_passes() -> None:
    for kind in NEEDS:
        assert environment_of(kind)["PATH"] == "/bin"
