from __future__ import annotations

import pytest

from geomill.errors import DatabaseUnfit, DatabaseUnreachable, SettingsError
from geomill.store.connection import connect, place
from geomill.store.fitness import require_postgis, require_server, version_text


async def test_nobody_listens_and_the_password_stays_ours():
    with pytest.raises(DatabaseUnreachable) as caught:
        await connect("postgresql://me:s3cret@127.0.0.1:1/maps")
    text = str(caught.value)
    assert text.startswith("no connection to database 'maps' at 127.0.0.1, port 1: ")
    assert "GEOMILL_DATABASE_URL" in text
    assert "s3cret" not in text
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "url", ["postgresql://me:s3cret@host:5432/db?nonsense=s3cret", "postgresql://me:x@s3cret@host/db", "s3cret"]
)
async def test_a_url_that_cannot_be_read_is_not_repeated(url):
    with pytest.raises(SettingsError, match="the database URL") as caught:
        await connect(url)
    assert "s3cret" not in str(caught.value)


def test_the_place_without_a_host_is_the_local_socket():
    assert place({}) == "database 'postgres' at the local socket, port 5432"


def test_versions():
    assert version_text(150014) == "15.14"
    require_server(150000)
    require_server(180001)
    with pytest.raises(DatabaseUnfit, match=r"PostgreSQL 14\.9, geomill needs 15 or later; upgrade it"):
        require_server(140009)


def test_postgis_is_needed():
    require_postgis("3.3.2", major=15)
    with pytest.raises(DatabaseUnfit, match="apt install postgresql-16-postgis-3"):
        require_postgis(None, major=16)
