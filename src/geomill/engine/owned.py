"""Jobs in the memory of their owner, and how they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from geomill.domain.engine.graph import Graph, compile_graph
from geomill.domain.engine.job import NORMAL_PRIORITY, Job
from geomill.domain.engine.run import RunState
from geomill.domain.engine.workflow import Workflow
from geomill.engine.large import LargeOutputs
from geomill.store import definitions, nodes
from geomill.store.pool import Connection


@dataclass(slots=True)
class OwnedJob:
    run: RunState
    epoch: int
    priority: int = NORMAL_PRIORITY
    tenant: str = ""
    has_asset: bool = False
    summarised_at: float = 0.0
    """When the asset's row was last updated with the job's progress, on this process's clock."""

    @property
    def job_id(self) -> str:
        return self.run.job_id


class Graphs:
    """Compiled definitions by hash. Jobs of the same definition share a graph."""

    def __init__(self, size: int = 256) -> None:
        self._compile = lru_cache(maxsize=size)(_compile)

    def of(self, workflow: Workflow, definition_hash: str) -> Graph:
        return self._compile(_Pinned(definition_hash, workflow))


@dataclass(frozen=True, eq=False)
class _Pinned:
    definition_hash: str
    workflow: Workflow

    def __hash__(self) -> int:
        return hash(self.definition_hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pinned) and other.definition_hash == self.definition_hash


def _compile(pinned: _Pinned) -> Graph:
    return compile_graph(pinned.workflow)


async def load(conn: Connection, job: Job, graphs: Graphs, large: LargeOutputs) -> OwnedJob:
    """Load a job from the database."""
    assert job.definition_hash is not None
    workflow = await definitions.get(conn, job.definition_hash)
    graph = graphs.of(workflow, job.definition_hash)
    rows = await large.fill(await nodes.of_job(conn, job.job_id))
    paused = job.paused_at is not None
    run = RunState.restore(graph, job.job_id, job.input_params, job.status, rows, paused=paused)
    return OwnedJob(run, job.owner_epoch, job.priority, job.tenant, job.asset_id is not None)
