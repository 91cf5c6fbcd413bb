"""The catalogue: the built-in library, folders that add and override, and all problems together."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomill.domain.engine.graph import compile_graph
from geomill.domain.engine.inputs import validate_inputs
from geomill.errors import NotFoundError, SettingsError, WorkflowError
from geomill.sdk.registry import load_handlers
from geomill.workflows.registry import WorkflowRegistry
from tests.unit.workflows.samples import QUEUES, text

HANDLERS = load_handlers().info
BUILT_IN = WorkflowRegistry.load([], handlers=HANDLERS, queues=QUEUES)


def load(*folders: Path) -> WorkflowRegistry:
    return WorkflowRegistry.load(folders, handlers=HANDLERS, queues=QUEUES)


def folder(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / f"{name}.yaml").write_text(content)
    return path


def test_the_library_shows_every_type_of_node() -> None:
    types = {node.type for workflow in BUILT_IN.all() for node in workflow.nodes.values()}
    assert types == {"start", "end", "task", "conditional", "fan_out", "fan_in"}


@pytest.mark.parametrize("workflow", BUILT_IN.all(), ids=lambda workflow: workflow.workflow_id)
def test_each_built_in_workflow_is_described_and_examples_run_without_inputs(workflow) -> None:
    assert workflow.description
    if not any(definition.is_required for definition in workflow.inputs.values()):
        validate_inputs(workflow, {})
    assert compile_graph(workflow).definition_hash == workflow.hash()


def test_each_file_is_named_as_its_workflow() -> None:
    import geomill.workflows

    library = Path(geomill.workflows.__path__[0]) / "library"
    assert {path.stem for path in library.glob("*.yaml")} == {w.workflow_id for w in BUILT_IN.all()}


def test_a_folder_adds_and_overrides(tmp_path: Path) -> None:
    first = folder(tmp_path / "one", a=text(), b=text(head="workflow_id: hello_world\nname: Mine"))
    (first / "notes.txt").write_text("not a workflow")
    (first / "c.yml").write_text(text(head="workflow_id: c\nname: C"))
    second = folder(tmp_path / "two", a=text(head="workflow_id: sample\nname: Later"))
    workflow_registry = load(first, second)
    assert len(workflow_registry) == len(BUILT_IN) + 2
    assert workflow_registry.get("hello_world").name == "Mine"
    assert workflow_registry.get("sample").name == "Later"
    assert "c" in workflow_registry
    ids = [workflow.workflow_id for workflow in workflow_registry.all()]
    assert ids == sorted(ids)


def test_an_unknown_workflow() -> None:
    with pytest.raises(NotFoundError, match="there is no workflow 'helo_world'; did you mean 'hello_world'"):
        BUILT_IN.get("helo_world")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="none does not exist"):
        load(tmp_path / "none")


def test_the_same_id_twice_in_a_folder(tmp_path: Path) -> None:
    place = folder(tmp_path / "one", a=text(), b=text())
    with pytest.raises(WorkflowError) as caught:
        load(place)
    (problem,) = caught.value.problems
    assert (
        str(problem)
        == f"{place / 'b.yaml'}:1: workflow_id: the workflow 'sample' is also in a.yaml (give each its own id)"
    )


def test_a_workflow_with_the_id_of_a_built_in_one_replaces_it_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine = folder(tmp_path / "one", mine=text().replace("workflow_id: sample", "workflow_id: hello_world"))
    assert load(mine).get("hello_world").nodes.keys() != BUILT_IN.get("hello_world").nodes.keys()
    (warning,) = caplog.messages
    assert warning.startswith(f"the workflow 'hello_world' of {mine / 'mine.yaml'} replaces the one of ")
    assert warning.endswith("library/hello_world.yaml")
    load(mine, mine)
    assert len(caplog.messages) == 2, "a folder that is named twice is one folder"


def test_the_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    first = folder(tmp_path / "one", a="a: [", b=text())
    second = folder(tmp_path / "two", c=text().replace("echo", "ecko"), d="")
    with pytest.raises(WorkflowError, match="3 workflow files are not valid") as caught:
        load(first, second)
    assert [Path(problem.file).name for problem in caught.value.problems] == ["a.yaml", "c.yaml", "d.yaml"]


def test_what_takes_the_place_of_a_workflow_of_the_house_is_one(tmp_path: Path) -> None:
    replaced = """
workflow_id: export_asset
name: Mine
inputs: {asset_id: {type: string}, previous_job_ids: {type: array, default: []}}
nodes:
  START: {type: start, next: hello}
  hello: {type: task, handler: hello_world, next: END}
  END: {type: end}
"""
    with pytest.raises(WorkflowError) as refused:
        load(folder(tmp_path / "a", export=replaced))
    assert "the workflow 'export_asset' is started by geomill only" in str(refused.value.problems[0])
    chosen = load(folder(tmp_path / "b", export=replaced + "started_by: geomill\n")).get("export_asset")
    assert (chosen.name, chosen.started_by.value) == ("Mine", "geomill")


def test_every_built_in_workflow_says_who_starts_it() -> None:
    library = Path(__file__).parents[3] / "src/geomill/workflows/library"
    assert [file.name for file in library.glob("*.yaml") if "\nstarted_by: " not in file.read_text()] == []
