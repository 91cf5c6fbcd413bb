"""`geomill workflows` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from geomill.cli.workflows import app
from geomill.errors import NotFoundError
from tests.unit.workflows.samples import text


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEOMILL_WORKFLOWS", "GEOMILL_HANDLERS", "GEOMILL_QUEUES"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_list() -> None:
    lines = succeed("list").splitlines()
    assert lines[0].split() == ["workflow", "version", "inputs", "name"]
    assert any(line.split() == ["hello_world", "1", "name", "Hello,", "World"] for line in lines)


def test_list_as_json() -> None:
    workflows = {entry["workflow_id"]: entry for entry in json.loads(succeed("list", "--json"))}
    assert workflows["echo_test"]["inputs"]["count"]["type"] == "integer"


def test_the_users_folders_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(text())
    monkeypatch.setenv("GEOMILL_WORKFLOWS", str(tmp_path))
    assert "sample" in succeed("list")


def test_show() -> None:
    shown = succeed("show", "route_by_size")
    assert "size_bytes  integer  default 1048576" in shown
    assert "== 'light' → process_light; otherwise → process_heavy" in shown
    assert "echo on container-tasks" in shown


def test_show_a_fan_out() -> None:
    assert "echo on functionapp-tasks, for each item" in succeed("show", "fan_out_test")


def test_show_as_mermaid_and_json() -> None:
    assert succeed("show", "hello_world", "--mermaid").startswith("flowchart TD\n")
    assert json.loads(succeed("show", "hello_world", "--json"))["nodes"]["hello"]["queue"] == "functionapp-tasks"


def test_show_an_unknown_workflow() -> None:
    result = run("show", "hello_word")
    assert isinstance(result.exception, NotFoundError)


def test_validate(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yml"
    good.write_text(text())
    bad.write_text(text().replace("echo", "ecko").replace("next: END", "next: EDN"))
    assert succeed("validate", good) == f"{good}: ok\n"
    result = run("validate", tmp_path)
    assert result.exit_code == 2
    assert result.output.splitlines() == [
        f"{bad}:6: nodes.work.handler: there is no handler 'ecko' (did you mean 'echo'?)",
        f"{bad}:7: nodes.work.next[0]: there is no node 'EDN' (did you mean 'END'?)",
        f"{good}: ok",
    ]


def test_validate_as_json(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: 1\na: 2")
    result = run("validate", bad, "--json")
    assert result.exit_code == 2
    (report,) = json.loads(result.output)
    assert report["valid"] is False
    assert report["problems"][0]["line"] == 2


def test_validate_nothing(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml"):
        assert isinstance(run("validate", path).exception, NotFoundError)


def test_schema() -> None:
    assert json.loads(succeed("schema"))["title"] == "geomill workflow"
