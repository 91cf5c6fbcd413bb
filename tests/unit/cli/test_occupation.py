"""One `geomill up` for a data folder, with real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from geomill.cli.occupation import occupied
from geomill.errors import ConflictError, SettingsError

HOLDER = """
import sys, time
from pathlib import Path
from geomill.cli.occupation import occupied
with occupied(Path(sys.argv[1])) as occupation:
    occupation.tell("http://127.0.0.1:4711")
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_names_the_first_until_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(ConflictError) as refused, occupied(tmp_path):
                pass
        finally:
            holder.kill()
    assert f"process {holder.pid}, since 20" in refused.value.message
    assert refused.value.message.endswith("UTC, at http://127.0.0.1:4711")
    with occupied(tmp_path):  # the lock went with the process, though its file still names it
        pass


def test_a_file_that_says_nothing_is_no_trouble(tmp_path: Path) -> None:
    with occupied(tmp_path):
        (tmp_path / "up.lock").write_text("[1, 2")
        with pytest.raises(ConflictError, match="already runs on the data folder"), occupied(tmp_path):
            pass


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(SettingsError, match="cannot be written"), occupied(tmp_path / "data"):
        pass
