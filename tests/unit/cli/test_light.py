"""The commands with only the libraries that `pip install geomill` brings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest

from tests.unit.test_dependencies import names, project

ABSENT_HERE = {"colorama", "win32-setctime"}
"""Libraries for other systems."""
RUN = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in absent:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

absent = set(sys.argv.pop().split())
sys.meta_path.insert(0, Absent())
from geomill.cli.main import run
run()
"""


@cache
def absent() -> str:
    """The modules of all distributions that the client does not need."""
    needed: set[str] = set()
    waiting = names(project()["project"]["dependencies"])
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name not in needed and name not in ABSENT_HERE:
            needed.add(name)
            requirements = [line for line in distribution(name).requires or () if "extra ==" not in line]
            waiting += [re.split(r"[\[<>=!~;( ]", line)[0] for line in requirements if "python_version <" not in line]
    owners = {
        module: {re.sub(r"[-_.]+", "-", owner).lower() for owner in distributions}
        for module, distributions in packages_distributions().items()
    }
    return " ".join(sorted(module for module, by in owners.items() if not by & needed and module != "geomill"))


def geomill(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "GEOMILL_DATA": str(data), "GEOMILL_URL": "http://127.0.0.1:1", "GEOMILL_KEY": "gm_key"}
    command = [sys.executable, "-c", RUN, *arguments, absent()]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)


def test_the_server_s_libraries_are_absent() -> None:
    assert {"psycopg", "fastapi", "rasterio", "obstore", "jinja2", "yaml"} <= set(absent().split())
    assert not {"httpx", "pydantic", "typer", "rich", "anyio", "certifi", "httpx_sse"} & set(absent().split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("assets", "approve", "a", "--clearance", "ouo"),
        ("audit",),
        ("callbacks", "list"),
        ("instances",),
        ("jobs", "list"),
        ("jobs", "logs", "a", "--follow"),
        ("keys", "list"),
        ("platforms", "list"),
        ("queues", "list"),
        ("schedules", "list"),
    ],
)
def test_commands_that_call_a_gateway_need_no_server(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ended = geomill(*arguments, data=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: no gateway answers at http://127.0.0.1:1;")


@pytest.mark.parametrize("arguments", [("up",), ("orchestrator",), ("db", "status")])
def test_commands_of_the_server_say_what_is_missing(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ended = geomill(*arguments, data=tmp_path)
    assert ended.returncode == 1
    assert re.fullmatch(
        r"error: this command needs the server's part of geomill, and '\w+' is not installed;"
        r" run pip install 'geomill\[server\]'\n",
        ended.stderr,
    ), ended.stderr


def test_the_help_needs_nothing(tmp_path: Path) -> None:
    assert "assets" in geomill("--help", data=tmp_path).stdout
