"""The workflows of a process: the built-in ones and those in the configured folders."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.starting import Starter
from geomill.domain.engine.workflow import Workflow
from geomill.errors import NotFoundError, Problem, SettingsError, WorkflowError, nearest
from geomill.workflows.loader import load_text, read_source

log = logging.getLogger(__name__)

SUFFIXES = (".yaml", ".yml")


class WorkflowRegistry:
    """Workflows by id. Of two with one id, the later counts."""

    def __init__(self, workflows: Iterable[Workflow], sources: Mapping[str, str] | None = None) -> None:
        """`sources` are the texts of the workflow files, by workflow id. A compiled workflow has none."""
        self._workflows = {workflow.workflow_id: workflow for workflow in workflows}
        self._sources = dict(sources or {})

    @classmethod
    def load(cls, folders: Sequence[Path], *, handlers: Handlers, queues: Collection[str]) -> WorkflowRegistry:
        """Load the built-in workflows, then each folder. A workflow replaces the one with its id that is built-in or in
        an earlier folder, and a warning says so. Raises `WorkflowError` with the problems of all files."""
        for folder in folders:
            if not folder.is_dir():
                raise SettingsError(
                    f"the workflow folder {folder} does not exist", remedy="create it, or change GEOMILL_WORKFLOWS"
                )
        loading = _Loading(handlers, queues)
        with as_file(files("geomill.workflows") / "library") as library:
            loading.folder(library)
        for folder in folders:
            loading.folder(folder)
        return cls(loading.result(), loading.sources)

    def get(self, workflow_id: str) -> Workflow:
        if workflow_id not in self._workflows:
            raise NotFoundError(f"there is no workflow '{workflow_id}'", remedy=nearest(workflow_id, self._workflows))
        return self._workflows[workflow_id]

    def find(self, workflow_id: str) -> Workflow | None:
        return self._workflows.get(workflow_id)

    def source(self, workflow_id: str) -> str | None:
        """Return the text of the workflow's file, as it was when this process read it; None if it has no file."""
        return self._sources.get(workflow_id)

    def joined(self, workflows: Iterable[Workflow]) -> WorkflowRegistry:
        """Return a registry with these workflows in addition. They have no files."""
        more = {workflow.workflow_id: workflow for workflow in workflows}
        sources = {workflow_id: text for workflow_id, text in self._sources.items() if workflow_id not in more}
        return WorkflowRegistry([*self._workflows.values(), *more.values()], sources)

    def all(self) -> tuple[Workflow, ...]:
        """Return all workflows, ordered by id."""
        return tuple(self._workflows[workflow_id] for workflow_id in sorted(self._workflows))

    def __contains__(self, workflow_id: object) -> bool:
        return workflow_id in self._workflows

    def __len__(self) -> int:
        return len(self._workflows)


def workflow_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())


class _Loading:
    """Collects workflows and problems from many files."""

    def __init__(self, handlers: Handlers, queues: Collection[str]) -> None:
        self._handlers, self._queues = handlers, queues
        self._paths: dict[str, Path] = {}
        """Where each workflow is, by its id."""
        self._loaded: list[Workflow] = []
        self.sources: dict[str, str] = {}
        self._problems: list[Problem] = []

    def folder(self, folder: Path) -> None:
        for path in workflow_files(folder):
            for workflow in self._file(path):
                self._require_internal(workflow, path)
                self._place(workflow.workflow_id, path)

    def _place(self, workflow_id: str, path: Path) -> None:
        """Note where a workflow is. One folder has an id once; of two folders, the later counts."""
        first, self._paths[workflow_id] = self._paths.get(workflow_id, path), path
        if first != path and first.parent == path.parent:
            message = f"the workflow '{workflow_id}' is also in {first.name}"
            self._problems.append(Problem("workflow_id", message, "give each its own id", str(path), 1))
        elif first != path:
            log.warning("the workflow '%s' of %s replaces the one of %s", workflow_id, path, first)

    def _require_internal(self, workflow: Workflow, path: Path) -> None:
        """Require that a replacement of an internal workflow is internal too, so that callers cannot start it."""
        internal = {loaded.workflow_id for loaded in self._loaded if loaded.started_by is Starter.GEOMILL}
        if workflow.workflow_id in internal and workflow.started_by is not Starter.GEOMILL:
            message = f"the workflow '{workflow.workflow_id}' is started by geomill only"
            self._problems.append(Problem("started_by", message, "write started_by: geomill", str(path), 1))

    def _file(self, path: Path) -> Iterator[Workflow]:
        try:
            source = read_source(path, str(path))
            workflow = load_text(source, file=str(path), handlers=self._handlers, queues=self._queues)
        except WorkflowError as error:
            self._problems.extend(error.problems)
            return
        self._loaded.append(workflow)
        self.sources[workflow.workflow_id] = source.decode("utf-8-sig")
        yield workflow

    def result(self) -> list[Workflow]:
        if self._problems:
            broken = len({problem.file for problem in self._problems})
            raise WorkflowError(
                f"{broken} workflow {'file is' if broken == 1 else 'files are'} not valid", problems=self._problems
            )
        return self._loaded
