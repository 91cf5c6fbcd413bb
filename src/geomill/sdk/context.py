"""What a handler is given: who it is, what to do, and how to tell of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, cast

from geomill.domain.engine.large import large_output
from geomill.domain.ids import SINGLE
from geomill.sdk.database import NO_DATABASE, DatabaseAccess
from geomill.sdk.orders import NO_ORDERS, AssetOrder, AssetOrders
from geomill.sdk.outcomes import ItemOutcome, OutcomePages, no_pages, outcomes_in
from geomill.sdk.result import HandlerError
from geomill.storage import NO_STORAGE, Storage

ParamsT = TypeVar("ParamsT")
OtherT = TypeVar("OtherT")


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """Where an earlier attempt got to."""

    phase: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Reporter(Protocol):
    """The worker's side of a context. Its methods return at once; what they say is written in the background, in
    order, and always before the result."""

    def progress(self, fraction: float, message: str) -> None: ...
    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None: ...
    def limit(self, seconds: float | None, message: str) -> None: ...


class ExternalCatalogue(Protocol):
    """What the external zone has beside files: entries of its catalogue, and tables."""

    async def prepare(self, order: AssetOrder) -> dict[str, Any]:
        """Copy the tables of the order's revision, which nobody sees yet. The entry that `publish` takes."""
        ...

    async def publish(self, order: AssetOrder, entry: Mapping[str, Any], files: Sequence[dict[str, Any]]) -> None:
        """Put in the entry, in place of what was there."""
        ...

    async def withdraw(self, order: AssetOrder) -> bool:
        """Take out entry and tables. Whether an entry was there."""
        ...


async def _always(_job_id: str) -> bool:
    return True


async def _nothing(_report: str, _seconds: float) -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True)
class HandlerContext(Generic[ParamsT]):
    """`params` is an instance of the model that the handler was registered with, or a dict without one."""

    task_id: str
    job_id: str
    node_id: str
    handler: str
    params: ParamsT
    logger: logging.Logger | logging.LoggerAdapter[logging.Logger]
    reporter: Reporter
    item_index: int = SINGLE
    attempt: int = 1
    retry_count: int = 0
    checkpoint: SavedCheckpoint | None = None
    is_cancelled: Callable[[], bool] = lambda: False
    storage: Storage = NO_STORAGE
    """Await its methods in an async handler; in one that is not, use those of `storage.sync`."""
    pool: Any = None
    """Sessions of the database, for async handlers."""
    database: DatabaseAccess = NO_DATABASE
    """For the others, which open a session by themselves and end it with the task."""
    job_ended: Callable[[str], Awaitable[bool]] = _always
    """Whether another job has ended. For async handlers."""
    asset_report: Callable[[str, float], Awaitable[list[dict[str, Any]]]] = _nothing
    """What operators ask about assets: `await ctx.asset_report("stuck", 3600)`. For async handlers."""
    orders: AssetOrders = NO_ORDERS
    """Decisions about assets that jobs of the house carry out. For async handlers."""
    external: ExternalCatalogue | None = None
    """None where there is no external database. For async handlers."""
    outcome_pages: OutcomePages = no_pages
    """Behind `item_outcomes`."""

    def with_params(self, params: OtherT) -> HandlerContext[OtherT]:
        """The same task with other parameters: for a handler that is made of others."""
        return cast("HandlerContext[OtherT]", replace(self, params=params))  # type: ignore[arg-type]  # the type changes

    def item_outcomes(self, node_id: str, *, after: int = -1, having: str = "") -> list[ItemOutcome]:
        """How the tasks of a fan-out of this job ended: the next page of them behind the index `after`, or nothing.
        `having` leaves out those without such a key in their output. For handlers that are not async."""
        return outcomes_in(self.outcome_pages(node_id, after, having))

    def read_output(self, output: Any) -> Any:
        """An output as an item's handler returned it. One beyond a megabyte lies in the object store, and what a fan_in
        or `item_outcomes` gives in its place, `{"large_output": …}`, is read. Any other value is returned as it is."""
        large = large_output(output)
        return output if large is None else large.value(self.storage.sync.read(large.name))

    async def read_output_async(self, output: Any) -> Any:
        """The same in an async handler."""
        large = large_output(output)
        return output if large is None else large.value(await self.storage.read(large.name))

    @property
    def cancelled(self) -> bool:
        """True once the job was cancelled or the worker must stop: save a checkpoint and return or raise."""
        return self.is_cancelled()

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise HandlerError("the task was cancelled", code="cancelled")

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """`progress(0.5)` or `progress(3, 10, "tile 3")`."""
        fraction = done if total is None else done / total if total else 1.0
        self.reporter.progress(min(max(fraction, 0.0), 1.0), message)

    @contextmanager
    def time_limit(self, seconds: float, message: str) -> Iterator[None]:
        """End the task, for good, if the block takes longer: with this message and the code `too_slow`. It also ends
        what no Python code could stop, such as a library that hangs. Blocks do not nest."""
        self.reporter.limit(seconds, message)
        try:
            yield
        finally:
            self.reporter.limit(None, "")

    def save_checkpoint(self, phase: str, data: Mapping[str, Any] | None = None) -> None:
        """Remember that `phase` is done: the next attempt finds it in `checkpoint`."""
        self.reporter.checkpoint(phase, dict(data or {}))
