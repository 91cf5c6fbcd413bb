"""The code version of a handler."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from geomill import __version__
from geomill.handlers.examples.hello_world import hello_world
from geomill.sdk import code_version as module
from geomill.sdk.code_version import UNKNOWN, code_version, source_fingerprint, source_of


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package that can be imported."""
    folder = tmp_path / "acme_versions"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "steps.py").write_text("def step(ctx):\n    return {}\n")
    (folder / "tools.py").write_text("FACTOR = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_versions"]:
        del sys.modules[name]
    module._fingerprint.cache_clear()


def test_the_version_is_that_of_the_whole_package(acme: Path) -> None:
    step = importlib.import_module("acme_versions.inner.steps").step
    version = code_version(step)
    assert len(version) == 12
    assert version == source_fingerprint([acme])
    assert code_version(importlib.import_module("acme_versions.inner.steps").step) == version


def test_it_stays_that_of_the_code_that_was_loaded(acme: Path) -> None:
    step = importlib.import_module("acme_versions.inner.steps").step
    version = code_version(step)
    (acme / "tools.py").write_text("FACTOR = 2\n")
    assert code_version(step) == version
    assert source_fingerprint([acme]) != version


def test_another_process_has_the_same_one(acme: Path) -> None:
    step = importlib.import_module("acme_versions.inner.steps").step
    program = (
        f"import sys; sys.path.insert(0, {str(acme.parent)!r})\n"
        "from acme_versions.inner.steps import step\n"
        "from geomill.sdk.code_version import code_version\n"
        "print(code_version(step))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == code_version(step)


def edit(folder: Path) -> None:
    (folder / "tools.py").write_text("FACTOR = 2\n")


def add(folder: Path) -> None:
    (folder / "more.py").write_text("")


def rename(folder: Path) -> None:
    (folder / "tools.py").rename(folder / "helpers.py")


def remove(folder: Path) -> None:
    (folder / "tools.py").unlink()


@pytest.mark.parametrize("change", [edit, add, rename, remove])
def test_every_change_of_the_source_changes_it(acme: Path, change: Callable[[Path], None]) -> None:
    before = source_fingerprint([acme])
    change(acme)
    assert source_fingerprint([acme]) != before


def test_other_files_and_times_do_not_change_it(acme: Path) -> None:
    before = source_fingerprint([acme])
    (acme / "__pycache__").mkdir(exist_ok=True)
    (acme / "__pycache__" / "tools.py").write_text("compiled")
    (acme / ".venv").mkdir()
    (acme / ".venv" / "library.py").write_text("")
    (acme / "notes.txt").write_text("")
    (acme / ".#tools.py").symlink_to(acme / "nowhere")
    (acme / "tools.py").write_text((acme / "tools.py").read_text())
    assert source_fingerprint([acme]) == before


def test_a_copy_in_another_folder_has_the_same_one(acme: Path, tmp_path: Path) -> None:
    copy = acme.rename(tmp_path / "elsewhere")
    before = source_fingerprint([copy])
    assert source_fingerprint([copy.rename(acme)]) == before


def test_a_module_without_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "acme_lonely.py"
    file.write_text("def step(ctx): ...\n")
    (tmp_path / "neighbour.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    lonely = importlib.import_module("acme_lonely")
    assert code_version(lonely.step) == source_fingerprint([file])
    del sys.modules["acme_lonely"]


def test_a_function_without_source() -> None:
    assert code_version(len) == UNKNOWN
    orphan = ModuleType("acme_orphan")
    exec("def step(ctx): ...", vars(orphan))
    assert code_version(vars(orphan)["step"]) == UNKNOWN


def test_too_much_source_is_not_read(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    assert source_fingerprint([acme]) == UNKNOWN
    monkeypatch.setattr(module, "MOST_FILES", 4)
    assert source_fingerprint([acme]) != UNKNOWN
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    assert source_fingerprint([acme]) == UNKNOWN


def test_a_file_that_cannot_be_read(acme: Path) -> None:
    (acme / "broken.py").symlink_to(acme / "nowhere.py")
    assert source_fingerprint([acme]) == UNKNOWN


def test_handlers_of_geomill_name_the_release() -> None:
    release, _, fingerprint = code_version(hello_world).rpartition("+")
    assert release == __version__
    assert len(fingerprint) == 12


@pytest.mark.parametrize(
    ("name", "file", "place"),
    [
        ("a.b.c", "/x/a/b/c.py", "/x/a"),
        ("a.b", "/x/a/b/__init__.py", "/x/a"),
        ("a", "/x/a.py", "/x/a.py"),
        ("a.b", "/elsewhere/odd.py", "/elsewhere/odd.py"),
    ],
)
def test_the_source_follows_from_the_file_of_the_module(name: str, file: str, place: str) -> None:
    """Also for a package without `__init__.py`, whose folders may be several."""
    assert source_of(name, Path(file)) == Path(place)
