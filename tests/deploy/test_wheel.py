"""A wheel, built and installed by the commands of the Dockerfile, runs in an environment that has nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill import __version__
from tests.deploy import dockerfile
from tests.deploy.dockerfile import ROOT

pytestmark = pytest.mark.slow
ABSENT = ("pytest", "hypothesis", "ruff", "hatchling")


class Installed:
    """The result of the stage `packages`, in a folder instead of in an image."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "opt/geomill/bin/geomill"
        (self.wheel,) = (folder / "build/wheels").glob("*.whl")

    def run(self, *words: str, program: Path | None = None) -> str:
        environ = {"PATH": os.defpath, "HOME": str(self.folder), "GEOMILL_DATA": str(self.folder / "data")}
        run = subprocess.run(
            [program or self.program, *words], env=environ, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        return run.stdout


def local(command: str, folder: Path) -> str:
    return command.replace("/opt/", f"{folder}/opt/").replace("python -m venv", f"{sys.executable} -m venv")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("image")
    build = folder / "build"
    (build / "script").mkdir(parents=True)
    assert (ROOT / "src/geomill/console_files/index.html").exists(), "script/console builds the console"
    for copy in dockerfile.of("packages", "COPY"):
        *sources, target = [word for word in copy.split() if not word.startswith("--from=")]
        for source in sources:
            place = ROOT / source.removeprefix("/build/")
            shutil.copytree(place, build / target, dirs_exist_ok=True) if place.is_dir() else shutil.copy(
                place, build / target
            )
    environ = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": ""}
    for command in dockerfile.of("packages", "RUN"):
        run = subprocess.run(
            ["sh", "-c", local(command, folder)], cwd=build, env=environ, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr[-3000:]
    yield Installed(folder)
    shutil.rmtree(folder)


def test_the_wheel_has_the_console_the_queries_and_the_workflows(installed: Installed) -> None:
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    assert {
        "geomill/console_files/index.html",
        "geomill/sql/schema.sql",
        "geomill/workflows/library/hello_world.yaml",
        "geomill/py.typed",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "console/"))]


def test_the_command_runs(installed: Installed) -> None:
    assert __version__ in installed.run("--version")
    assert "raster_processing" in installed.run("workflows", "list")


def test_only_what_a_server_needs_is_installed(installed: Installed) -> None:
    listed = installed.run("-m", "pip", "list", "--format", "freeze", program=installed.program.with_name("python"))
    names = {line.split("==")[0].lower() for line in listed.splitlines()}
    assert {"geomill", "psycopg", "rasterio"} <= names
    assert not names & set(ABSENT)


def test_a_job_runs_through(installed: Installed) -> None:
    """The private server needs PostgreSQL on the machine, which the image of a role does not have."""
    assert "Hello, Ada!" in installed.run("jobs", "submit", "hello_world", "--input", "name=Ada", "--wait")
