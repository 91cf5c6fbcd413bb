"""`geomill up --reload`: restarts the processes when workflow files or handlers change.

A change is first loaded in a process of its own. If it cannot be loaded, the reason is printed and everything goes on
as it was. Otherwise the processes are stopped in order and started again: a worker finishes its tasks or hands them
back, and a running job keeps the workflow it started with.

Known weakness: a task that outlasts `GEOMILL_DRAIN_SECONDS` begins again, from its checkpoint.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import typer
from watchfiles import Change, awatch

from geomill.cli import context
from geomill.errors import GeomillError
from geomill.sdk.registry import GROUPS
from geomill.settings import Settings

log = logging.getLogger(__name__)

SUFFIXES = (".py", ".yaml", ".yml")
OWN_PACKAGE = "geomill"


def sources(settings: Settings) -> list[Path]:
    """Return the folders and files of workflows and handlers. Those that geomill brings do not change."""
    names = [entry.module for group in GROUPS for entry in entry_points(group=group)]
    modules = [name for name in [*names, *settings.workflow.handlers] if name.partition(".")[0] != OWN_PACKAGE]
    paths = [*settings.workflow.workflows, *(path for name in modules for path in _places(name))]
    return sorted({path.resolve() for path in paths if path.exists()})


def _places(module: str) -> Iterable[Path]:
    spec = importlib.util.find_spec(module)
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin else []


async def reload_on_change(
    settings: Settings, overrides: Mapping[str, str], restart: Callable[[], None], stop: asyncio.Event
) -> None:
    """Watch the sources until `stop` is set, and call `restart` after each change that can be loaded."""
    paths = sources(settings)
    if not paths:
        log.warning("there is nothing to reload: name folders with --workflows, or modules with GEOMILL_HANDLERS")
        return
    async for changes in awatch(*paths, watch_filter=_matters, stop_event=stop):
        names = ", ".join(sorted({Path(path).name for _, path in changes}))
        if problem := await _problem(overrides):
            typer.echo(f"{names} changed, but cannot be loaded; the version before goes on:\n{problem}", err=True)
            continue
        typer.echo(f"{names} changed: reloading", err=True)
        restart()


def _matters(_change: Change, path: str) -> bool:
    return path.endswith(SUFFIXES)


async def _problem(overrides: Mapping[str, str]) -> str:
    """Load workflows and handlers in a new process. Returns what is wrong with them, or an empty text."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "geomill.cli.reloading"),
        env={**os.environ, **overrides},
        stdout=PIPE,
        stderr=STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode("utf-8", "replace").strip() if process.returncode else ""


def check() -> None:
    """Load all workflows and handlers, and exit with 1 and the problems if that fails."""
    try:
        context.workflow_registry(context.handlers())
    except GeomillError as error:
        sys.exit("\n".join([str(error), *(f"  {problem}" for problem in getattr(error, "problems", ()))]))


if __name__ == "__main__":
    check()
