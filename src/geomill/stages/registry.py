"""Finds stage jobs in the places of handlers: entry points (`geomill.stage_jobs`) and `GEOMILL_HANDLERS`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from geomill.domain.engine.handler import Handlers
from geomill.errors import NotFoundError, nearest
from geomill.sdk.registry import find_modules, replaces
from geomill.stages.compiler import compile_job
from geomill.stages.registration import STAGE_MARK, StageJob
from geomill.workflows.registry import WorkflowRegistry


class StageJobs(Mapping[str, StageJob]):
    """Every job type by name. Immutable."""

    def __init__(self, jobs: Iterable[StageJob] = ()) -> None:
        self._jobs = MappingProxyType({job.job_type: job for job in sorted(jobs, key=lambda job: job.job_type)})

    def __getitem__(self, job_type: str) -> StageJob:
        try:
            return self._jobs[job_type]
        except KeyError:
            raise NotFoundError(f"there is no job type '{job_type}'", remedy=nearest(job_type, self._jobs)) from None

    def __contains__(self, job_type: object) -> bool:
        return job_type in self._jobs

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def join(
        self, workflow_registry: WorkflowRegistry, *, handlers: Handlers, queues: Collection[str]
    ) -> WorkflowRegistry:
        """Return a catalogue of the workflows and the compiled stage jobs."""
        compiled = [compile_job(job, handlers=handlers, queues=queues) for job in self.values()]
        return workflow_registry.joined(compiled)


def load_stage_jobs(modules: Sequence[str] = ()) -> StageJobs:
    """Import the modules of entry points and `modules`, including submodules, and return their stage jobs."""
    jobs: dict[str, StageJob] = {}
    for module in find_modules(modules):
        for value in vars(module).values():
            job = getattr(value, STAGE_MARK, None)
            if not isinstance(job, StageJob):
                continue
            first = jobs.setdefault(job.job_type, job)
            if first is not job and replaces("stage job", job.job_type, _place(first), _place(job)):
                jobs[job.job_type] = job
    return StageJobs(jobs.values())


def _place(job: StageJob) -> str:
    return f"{job.controller.__module__}.{job.controller.__qualname__}"
