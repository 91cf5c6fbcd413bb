"""The description of data on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomill.cli.metadata import metadata_of
from geomill.errors import InputError


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text('{"title": "Old", "providers": [{"name": "Acme"}]}')
    fields = metadata_of(file, title="New", description=None, keywords=[])
    assert fields == {"title": "New", "providers": [{"name": "Acme"}]}


def test_nothing_is_nothing() -> None:
    assert metadata_of(None, title=None, keywords=None) is None


@pytest.mark.parametrize("text", ["no json", "[1]"])
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "m.json"
    file.write_text(text)
    with pytest.raises(InputError, match="--metadata"):
        metadata_of(file)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        metadata_of(tmp_path / "none.json")
