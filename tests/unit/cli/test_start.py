"""The command starts at once: what a command needs is imported when it is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from geomill.cli.lazy import Later
from geomill.cli.main import app

GEOMILL = str(Path(sys.executable).with_name("geomill"))
HEAVY = ("asyncio", "httpx", "jinja2", "obstore", "psycopg", "pydantic", "rasterio", "rich", "uvloop", "yaml")
NOT_FOR_JOBS = ("geomill.engine.orchestrator", "geomill.worker", "httpx", "jinja2", "obstore", "rich", "yaml")
COMMANDS: dict[str, Later] = get_command(app).commands  # type: ignore[attr-defined]  # it is a group


def imported(program: str) -> set[str]:
    """The modules that a fresh interpreter has at its end."""
    text = f"import sys\ntry:\n    {program}\nfinally:\n    print('\\n'.join(sys.modules), file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", text, "--help"], capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


def loaded(modules: set[str], names: tuple[str, ...]) -> set[str]:
    return {name for name in names if name in modules}


def test_help_imports_nothing_that_is_heavy() -> None:
    modules = imported("from geomill.cli.main import run; run()")
    assert "geomill.cli.main" in modules
    assert loaded(modules, HEAVY) == set()
    assert {name for name in modules if name.startswith("geomill.")} == {
        "geomill.cli",
        "geomill.cli.lazy",
        "geomill.cli.main",
        "geomill.errors",
        "geomill.remedies",
    }


def test_the_commands_about_jobs_import_neither_the_engine_nor_the_workers() -> None:
    modules = imported("import geomill.cli.jobs, geomill.cli.control, geomill.cli.pruning")
    assert loaded(modules, NOT_FOR_JOBS) == set()


def test_the_commands_about_assets_import_no_driver_because_they_ask_a_gateway() -> None:
    assert loaded(imported("import geomill.cli.assets"), ("psycopg", "psycopg_pool", "geomill.store.pool")) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_stands_for_a_command_says_what_the_command_says(name: str) -> None:
    later = COMMANDS[name]
    command = later.load()
    assert (command.name, command.help) == (later.name, later.help)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("geomill jo", "jobs"), ("geomill jobs pru", "prune"), ("geomill jobs prune --ol", "--older-than")],
)
def test_the_shell_completes(typed: str, offered: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    environment = {**os.environ, **words, "_GEOMILL_COMPLETE": "complete_bash"}
    ended = subprocess.run([GEOMILL], capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout.split() == [offered]
