"""The commands that the README, the tutorial and the how-to show work, and say what they are shown to say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill.embedded import Cluster
from tests.acceptance.conftest import data_folder
from tests.prepared import copy_prepared

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SHOWN = (
    "README.md",
    "docs/tutorial/first-workflow.md",
    "docs/tutorial/first-stage-job.md",
    "docs/how-to/write-a-handler.md",
)
VARYING = re.compile(r"…|[0-9a-f]{8}-|\d\d:\d\d|^[○●]|^job ")
"""Lines that differ from run to run: ids, times, states that may be too short to be seen."""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def exchanges(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each `$ command` with the lines that are shown below it."""
    for block in blocks(text, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            yield command, [line.rstrip() for line in output if line.strip()]


def save_files(text: str, folder: Path) -> None:
    """Save the files that the text shows: workflows by their id in `workflows`, the first Python block by the name it
    is given."""
    (folder / "workflows").mkdir()
    for block in blocks(text, "yaml"):
        if match := re.match(r"workflow_id: (\w+)", block):
            (folder / "workflows" / f"{match[1]}.yaml").write_text(block)
    for block in blocks(text, "python")[:1]:
        name = re.search(r"[Ss]ave this as `(\w+\.py)`", text)
        (folder / (name[1] if name else "my_handlers.py")).write_text(block)


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """A data folder with a server that is started once for all commands."""
    with data_folder() as data:
        copy_prepared(data)
        Cluster(data).start()
        yield data


@pytest.mark.parametrize("page", SHOWN)
def test_the_commands_shown(page: str, running: Path, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    save_files(text, tmp_path)
    environ = {**os.environ, "GEOMILL_DATA": str(running), "COLUMNS": "120"}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    ran = 0
    exports = ""
    for command, shown in exchanges(text):
        if command.startswith("export "):
            exports += f"{command}\n"
        if not command.startswith("geomill "):
            continue
        done = subprocess.run(
            ["/bin/sh", "-c", exports + command],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        output_lines = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        lacking = [line for line in shown if line not in output_lines and not VARYING.search(line)]
        assert not lacking, f"{command}\nsaid {output_lines}"
        ran += 1
    assert ran >= 2
