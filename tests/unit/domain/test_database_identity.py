from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from geomill.domain.database_identity import client_of, may_carry_token, with_identity


@pytest.mark.parametrize(
    "url", ["postgresql://worker@db/geo", "postgresql://worker@db/geo?sslmode=require", "postgresql:///geo?user=worker"]
)
@pytest.mark.parametrize("client_id", ["", "0a1b-2c"])
def test_a_marked_url_is_one_that_libpq_reads(url: str, client_id: str) -> None:
    marked = with_identity(url, client_id)
    before, after = conninfo_to_dict(url), conninfo_to_dict(marked)
    assert client_of(marked) == client_of(make_conninfo(marked, connect_timeout=5)) == client_id
    assert after.pop("passfile") == f"azure-identity:{client_id}"
    assert before == after
    assert with_identity(with_identity(url, client_id), "another") == with_identity(url, client_id)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://worker:secret@db/geo",
        "postgresql://worker@db/geo?password=secret",
        "postgresql://worker@db/geo?passfile=/etc/geomill/passwords",
    ],
)
def test_a_url_that_has_its_password_keeps_it(url: str) -> None:
    assert with_identity(url, "an-identity") == url


def test_an_ordinary_file_of_passwords_is_no_mark() -> None:
    assert client_of("postgresql://worker@db/geo?passfile=/etc/geomill/passwords") is None
    assert client_of("postgresql://worker:azure-identity:x@db/geo") is None


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("postgresql://worker@db.postgres.database.azure.com/geo", False),
        ("postgresql://worker@db.postgres.database.azure.com/geo?sslmode=prefer", False),
        ("postgresql://worker@db.postgres.database.azure.com/geo?sslmode=require", True),
        ("postgresql://worker@db.postgres.database.azure.com/geo?sslmode=verify-full", True),
        ("postgresql://worker@127.0.0.1/geo", True),
        ("postgresql://worker@127.0.0.1/geo?hostaddr=10.0.0.5", False),
        ("postgresql://worker@localhost,db/geo", False),
        ("postgresql://worker@localhost:5432,db:5433/geo", False),
        ("postgresql://worker@[::1]:5432/geo", True),
        ("postgresql://worker@[2001:db8::1]:5432/geo", False),
        ("postgresql://worker@%2Frun%2Fpostgresql/geo", True),
        ("postgresql://worker@db/geo?sslmode=require&sslmode=disable", False),
        ("postgresql:///geo", False),
        ("postgresql:///geo?host=/run/postgresql", True),
        ("postgresql:///geo?host=/run/postgresql,db", False),
        ("postgresql:///geo?host=db", False),
    ],
)
def test_a_token_travels_only_under_encryption(url: str, may: bool) -> None:
    assert may_carry_token(url) is may
