"""Bad input: one clear message with the remedy, an exit code, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Geomill

MISSPELT = """
workflow_id: misspelt
name: Misspelt
nodes:
  START: {type: start, next: hello}
  hello:
    type: task
    handler: helo_world
    timout_seconds: 5
    next: END
  END: {type: end}
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jobs", "submit", "helo_world"], "there is no workflow 'helo_world'; did you mean 'hello_world'?"),
        (["jobs", "submit", "hello_world", "-i", "nam=x"], "hello_world has no input 'nam'; did you mean 'name'?"),
        (["jobs", "submit", "hello_world", "-i", "name"], "--input 'name' has no '='"),
        (["jobs", "submit", "echo_test", "-i", "count=many"], "count"),
        (["--workflows", "/nowhere/at/all", "workflows", "list"], "the workflow folder /nowhere/at/all does not exist"),
    ],
)
@pytest.mark.slow
def test_wrong_arguments(geomill: Geomill, data: Path, arguments: list[str], message: str) -> None:
    ended = geomill("--data", str(data), *arguments)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert not data.exists()


@pytest.mark.slow
def test_a_workflow_with_mistakes_names_each_with_its_line(geomill: Geomill, tmp_path: Path) -> None:
    file = tmp_path / "misspelt.yaml"
    file.write_text(MISSPELT)
    ended = geomill("workflows", "validate", str(file))
    assert ended.code != 0
    text = ended.out + ended.err
    assert "misspelt.yaml:9" in text
    assert "did you mean 'timeout_seconds'?" in text

    file.write_text(MISSPELT.replace("timout", "timeout"))
    ended = geomill("workflows", "validate", str(file))
    assert "misspelt.yaml:8" in ended.out + ended.err
    assert "did you mean 'hello_world'?" in ended.out + ended.err

    file.write_text("workflow_id: [broken")
    ended = geomill("workflows", "validate", str(file))
    assert ended.code != 0
    assert "misspelt.yaml:1" in ended.out + ended.err


def test_a_missing_input(geomill: Geomill, data: Path, tmp_path: Path) -> None:
    text = MISSPELT.replace("helo_world", "hello_world").replace("timout", "timeout")
    (tmp_path / "strict.yaml").write_text(text.replace("nodes:", "inputs: {depth: {type: integer}}\nnodes:", 1))
    ended = geomill("--data", str(data), "--workflows", str(tmp_path), "jobs", "submit", "misspelt")
    assert ended.code == 2
    assert "depth: the input is missing" in ended.err
    assert not data.exists()


def test_an_unknown_variable(geomill: Geomill) -> None:
    ended = geomill("workflows", "list", GEOMILL_DATABASE_ULR="postgresql://localhost")
    assert ended.code == 2
    assert ended.err.strip() == (
        "error: the environment variable GEOMILL_DATABASE_ULR is not a setting; did you mean 'GEOMILL_DATABASE_URL'?"
    )


def test_an_unreachable_database_is_named_without_its_password(geomill: Geomill) -> None:
    ended = geomill("jobs", "list", GEOMILL_DATABASE_URL="postgresql://me:s3cret@127.0.0.1:1/maps")
    assert ended.code == 1
    assert "database 'maps' at 127.0.0.1, port 1" in ended.err
    assert "s3cret" not in ended.err
    assert len(ended.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_data_folder_that_cannot_be_made(geomill: Geomill) -> None:
    """Not even root can write in /proc."""
    ended = geomill("--data", "/proc/geomill", "jobs", "list")
    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert "/proc/geomill" in ended.err
    assert len(ended.err.strip().splitlines()) == 1
