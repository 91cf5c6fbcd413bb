"""The documentation is true and complete: what the code has is named, what is linked exists, what is drawn is so."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import geomill
from geomill.cli.lazy import Later
from geomill.cli.main import app
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.states import (
    APPROVAL_MACHINE,
    CLEARANCE_MACHINE,
    JOB_MACHINE,
    NODE_MACHINE,
    PROCESSING_MACHINE,
    ApprovalState,
    ClearanceState,
    JobStatus,
    Machine,
    NodeStatus,
    ProcessingStatus,
)
from geomill.errors import GeomillError
from geomill.sdk.registry import load_handlers
from geomill.settings import variables
from geomill.stages.registry import load_stage_jobs
from geomill.workflows.loader import load_text
from geomill.workflows.registry import WorkflowRegistry

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *DOCS.rglob("*.md")])
HANDLERS = load_handlers()

# Places of the machine on which this was written, put together so that this file does not name them.
FOREIGN = tuple("/".join(parts) for parts in (("", "work", ""), ("", "root", ""), ("shared", "")))
MAY_NAME_FOREIGN: dict[str, str] = {}
"""Files that name one of them legitimately, and why."""


def reference(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def missing(names: Any, text: str) -> list[str]:
    return [name for name in sorted(names) if f"`{name}`" not in text]


# Names


def test_every_variable_is_in_the_reference() -> None:
    assert missing(variables(), reference("settings.md")) == []


def commands(command: Any, path: str = "geomill") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child.load() if isinstance(child, Later) else child, f"{path} {name}")


def test_every_command_has_a_heading_and_every_option_is_in_the_reference() -> None:
    text = reference("cli.md")
    for path, command in commands(get_command(app)):
        if not getattr(command, "commands", None):
            assert re.search(rf"^### {re.escape(path)}$", text, re.MULTILINE), f"cli.md lacks '### {path}'"
        section = _section(text, path)
        for parameter in command.params:
            options = [option for option in parameter.opts if option.startswith("--")]
            lacking = [option for option in options if not re.search(rf"`{option}\b", section)]
            assert not lacking, f"cli.md lacks {lacking} of {path}"


def _section(text: str, path: str) -> str:
    """From the command's heading to the next one."""
    match = re.search(rf"^##+ {re.escape(path)}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def test_no_command_is_described_that_is_not_there() -> None:
    command_paths = {path for path, _ in commands(get_command(app))}
    assert set(re.findall(r"^##+ (geomill.*)$", reference("cli.md"), re.MULTILINE)) <= command_paths


def errors(error: type[GeomillError] = GeomillError) -> Iterator[type[GeomillError]]:
    yield error
    for child in error.__subclasses__():
        if child.__module__.startswith("geomill."):
            yield from errors(child)


def test_every_error_code_is_in_the_reference_with_its_exit_code() -> None:
    for module in pkgutil.walk_packages(geomill.__path__, "geomill."):
        importlib.import_module(module.name)
    text = reference("errors.md")
    lacking = [error.code for error in errors() if f"| `{error.code}` | {error.exit_code} |" not in text]
    assert lacking == []


def test_every_handler_and_its_fields_are_in_the_reference() -> None:
    text = reference("library.md").split("## Handlers")[1]
    names = {name: handler for name, handler in HANDLERS.items() if handler.function.__module__.startswith("geomill.")}
    assert missing(names, text) == []
    for handler in names.values():
        for model in (handler.info.params, handler.info.output):
            assert missing(model.model_fields if model else (), text) == []


def test_every_built_in_workflow_and_its_inputs_are_in_the_reference() -> None:
    text = reference("library.md").split("## Handlers")[0]
    for workflow in WorkflowRegistry.load([], handlers=HANDLERS.info, queues=TASK_QUEUES).all():
        assert missing([workflow.workflow_id, *workflow.inputs], text) == []


def test_every_job_type_and_its_parameters_are_in_the_reference() -> None:
    text = reference("library.md").split("## Handlers")[0]
    for job in load_stage_jobs().values():
        names = job.controller.parameters_schema()["properties"]
        assert missing([job.job_type, *names], text) == []


# Figures


def diagram(machine: Machine[Any], states: type[StrEnum]) -> str:
    reopens = getattr(machine, "reopens", {})
    edges = [f"{s.value} --> {t.value}" for s in states for t in states if t in machine.steps[s]]
    retries = [f"{s.value} --> {t.value}: job retried" for s in states for t in states if t in reopens.get(s, ())]
    ends = [f"{s.value} --> [*]" for s in states if s in machine.terminal]
    lines = [f"[*] --> {next(iter(states)).value}", *edges, *retries, *ends]
    return "stateDiagram-v2\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("place", "machine", "states"),
    [
        (0, JOB_MACHINE, JobStatus),
        (1, NODE_MACHINE, NodeStatus),
        (2, PROCESSING_MACHINE, ProcessingStatus),
        (3, APPROVAL_MACHINE, ApprovalState),
        (4, CLEARANCE_MACHINE, ClearanceState),
    ],
    ids=["job", "node", "processing", "approval", "clearance"],
)
def test_the_figures_are_the_machines(place: int, machine: Machine[Any], states: type[StrEnum]) -> None:
    drawn = blocks(DOCS / "reference" / "state-machines.md", "mermaid")
    assert drawn[place] == diagram(machine, states), "paste this into the page:\n" + diagram(machine, states)
    text = reference("state-machines.md")
    assert [state.value for state in states if f"| `{state.value}` |" not in text] == []


# Examples


examples = [
    pytest.param(block, id=f"{page_id(page)}:{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "yaml"))
    if "workflow_id:" in block
]


@pytest.mark.parametrize("example", examples)
def test_every_workflow_shown_loads(example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    handlers = dict(HANDLERS.info)
    shown = blocks(DOCS / "how-to" / "write-a-handler.md", "python")[0]
    (tmp_path / "shown_handlers.py").write_text(shown)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    handlers |= load_handlers(["shown_handlers"]).info
    load_text(example, file="example.yaml", handlers=handlers, queues=TASK_QUEUES)


def test_the_handler_tests_shown_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second, tests = blocks(DOCS / "how-to" / "write-a-handler.md", "python")
    (tmp_path / "shown_for_tests.py").write_text(first + second)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    names: dict[str, Any] = {}
    exec(tests.replace("my_handlers", "shown_for_tests"), names)
    test_names = [name for name in names if name.startswith("test_")]
    assert len(test_names) == 3
    for name in test_names:
        names[name](tmp_path) if name == "test_counts" else names[name]()


def test_the_stage_jobs_shown_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The stage jobs of the how-to and of the tutorial compile."""
    shown = {
        "shown_stages": blocks(DOCS / "how-to" / "write-a-stage-job.md", "python"),
        "shown_tutorial": blocks(DOCS / "tutorial" / "first-stage-job.md", "python"),
    }
    for name, parts in shown.items():
        (tmp_path / f"{name}.py").write_text("\n".join(parts))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    handlers, jobs = load_handlers(list(shown)).info, load_stage_jobs(list(shown))
    assert {"count_tiles", "older_job", "letters"} <= set(jobs)
    assert len(jobs.join(WorkflowRegistry([]), handlers=handlers, queues=TASK_QUEUES)) == len(jobs)


# Links and places


def links(page: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} is not there"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_in_the_index() -> None:
    indexes = (DOCS / "README.md", DOCS / "decisions" / "README.md")
    listed = {(index.parent / link).resolve() for index in indexes for link in links(index)}
    assert [page_id(page) for page in DOCS.rglob("*.md") if page not in listed and page.name != "README.md"] == []


def test_every_file_that_the_pages_name_is_there() -> None:
    for page in PAGES:
        for path in re.findall(r"`((?:src|script|tests|docs|benchmarks)/[\w./-]*\w)", page.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{page_id(page)} names {path}"


def test_the_first_screen_of_the_readme_names_both_scripts() -> None:
    first = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40])
    assert "script/demo" in first
    assert "script/test" in first


def test_pictures_are_small_and_shown_and_fetch_nothing() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *DOCS.rglob("*.md")))
    for picture in (DOCS / "pictures").iterdir():
        assert picture.name in pages
        assert picture.stat().st_size < 60_000
        text = picture.read_text(encoding="utf-8") if picture.suffix == ".svg" else ""
        assert set(re.findall(r"https?://[^\"'\s)]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_no_file_names_a_place_of_the_writers_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    mentions = [
        f"{name}: {place}"
        for name in listed
        if name not in MAY_NAME_FOREIGN and (ROOT / name).is_file()
        for place in FOREIGN
        if place in (ROOT / name).read_text(encoding="utf-8", errors="replace")
    ]
    assert mentions == []
