import os
import pwd

import pytest

from geomill.embedded import account as account_module
from geomill.embedded.account import Account
from geomill.errors import EmbeddedError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def test_a_plain_user_runs_the_server_himself(tmp_path, monkeypatch):
    monkeypatch.setattr(account_module.os, "geteuid", lambda: 1234)
    account = Account.of(tmp_path / "absent")
    assert account.uid == 1234
    assert not account.dropped


def test_the_cluster_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(account_module.os, "geteuid", lambda: 1234)
    owner = pwd.getpwuid(tmp_path.stat().st_uid).pw_name
    with pytest.raises(EmbeddedError, match=f"belongs to the user {owner}; run as {owner} or as root"):
        Account.of(tmp_path)


def test_a_system_without_an_unprivileged_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(account_module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(account_module, "_UNPRIVILEGED", ("no-such-user",))
    with pytest.raises(EmbeddedError, match="does not run as root"):
        Account.of(tmp_path / "absent")


@as_root
def test_root_becomes_an_unprivileged_user(tmp_path):
    account = Account.of(tmp_path / "absent")
    assert account.name in ("postgres", "nobody")
    assert account.run(["id", "-u"]).stdout.strip() == str(account.uid) != "0"
    assert account.run(["id", "-G"]).stdout.strip() == str(account.gid)


@as_root
def test_root_keeps_the_owner_of_an_existing_cluster(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    account = Account.of(tmp_path)
    assert (account.name, account.uid, account.dropped) == ("12345", 12345, True)


@as_root
def test_a_closed_folder_cannot_be_entered(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    account = Account.of(tmp_path / "absent")
    tmp_path.chmod(0o700)
    assert not account.can_enter(inner)


def test_variables_that_would_mislead_the_server_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PROJ_DATA", "/wheel/proj")
    printed = Account("caller", os.geteuid(), os.getegid()).run(["env"]).stdout
    assert "LC_ALL=C" in printed
    assert "PGPORT" not in printed
    assert "PROJ_DATA" not in printed
