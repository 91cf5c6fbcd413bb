from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from geomill.cli import link_key
from geomill.errors import SettingsError
from geomill.settings import Settings


def test_it_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    first = link_key.ensure(Settings({}, data=tmp_path))
    assert link_key.ensure(Settings({}, data=tmp_path)) == first
    assert len(first.secret) >= 32
    assert (tmp_path / "link.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["link.key"]


def test_all_who_make_it_at_once_have_the_same(tmp_path: Path) -> None:
    settings = Settings({}, data=tmp_path)
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: link_key.ensure(settings), range(32)))
    assert len(keys) == 1


def test_a_setting_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEOMILL_LINK_SECRET", "s" * 40)
    assert link_key.ensure(Settings({}, data=tmp_path)).secret == b"s" * 40
    assert not list(tmp_path.iterdir())


def test_a_short_secret_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEOMILL_LINK_SECRET", "tooshort")
    with pytest.raises(SettingsError) as error:
        Settings({}, data=tmp_path)
    assert "GEOMILL_LINK_SECRET" in str(error.value)
    assert "tooshort" not in str(error.value)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="GEOMILL_LINK_SECRET"):
        link_key.ensure(Settings({}, data=tmp_path / "file" / "data"))
