"""`geomill keys` as a user types it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.acceptance.conftest import Geomill


@pytest.mark.slow
def test_make_list_and_revoke(geomill: Geomill, database: str) -> None:
    here = {"GEOMILL_DATABASE_URL": database}
    created = geomill(
        "keys", "create", "--role", "operator", "--role", "reader", "--name", "nightly", "--expires", "90d", **here
    )
    assert created.code == 0
    key = created.out.strip()
    assert key.startswith("gm_")
    assert key not in created.err
    listed = geomill("keys", "list", **here)
    assert "nightly" in listed.out
    assert "operator, reader" in listed.out
    (shown,) = geomill("keys", "list", "--json", **here).json
    assert shown["key_id"] == key.split("_")[1]
    assert shown["expires_at"]
    assert key.split("_")[2] not in str(shown)
    assert "hash" not in str(shown)
    with psycopg.connect(database) as conn:
        assert key.split("_")[2] not in str(conn.execute("SELECT * FROM app.api_keys").fetchall())
    assert geomill("keys", "revoke", "nightli", **here).err.startswith("error: there is no key 'nightli'")
    assert geomill("keys", "revoke", "nightly", **here).out == f"revoked {shown['key_id']} (nightly)\n"
    assert geomill("keys", "revoke", "nightly", **here).code == 2
    partner = geomill("keys", "create", "--role", "submitter", "--platform", "ddh", "--json", **here).json
    assert (partner["roles"], partner["platform_id"], partner["name"]) == (["submitter"], "ddh", partner["key_id"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--role", "submitter"], "add --platform"),
        (["--role", "reader", "--expires", "soon"], "write it as 90d"),
        (["--role", "reader", "--expires", "9999d"], "at most ten years"),
        (["--role", "reader", "--name", "a\nb"], "printable"),
        (["--role", "reader", "--name", ""], "printable"),
        (["--role", "emperor"], "emperor"),
        ([], "--role"),
    ],
)
@pytest.mark.slow
def test_what_is_refused_makes_nothing(geomill: Geomill, data: Path, options: list[str], words: str) -> None:
    ended = geomill("--data", str(data), "keys", "create", *options)
    assert ended.code == 2
    assert words in ended.err
    assert not data.exists()


@pytest.mark.slow
def test_doctor_looks_at_the_administrators_key(geomill: Geomill, database: str, data: Path) -> None:
    def key_line() -> str:
        ended = geomill("--data", str(data), "doctor", GEOMILL_DATABASE_URL=database)
        return next(line for line in ended.out.splitlines() if "administrator's key" in line)

    assert key_line().startswith("ok")
    data.mkdir()
    created = geomill("keys", "create", "--role", "admin", "--name", "a", GEOMILL_DATABASE_URL=database)
    (data / "admin.key").write_text(created.out)
    open_to_others = key_line()
    assert open_to_others.startswith("warn")
    assert "other users of this machine can read" in open_to_others
    (data / "admin.key").chmod(0o600)
    assert key_line().endswith("is valid")
    geomill("keys", "revoke", "a", GEOMILL_DATABASE_URL=database)
    assert "has expired or was revoked" in key_line()
    (data / "admin.key").write_text("rubbish")
    assert "holds no key of this database" in key_line()
