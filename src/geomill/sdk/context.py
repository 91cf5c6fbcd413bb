"""The context of a handler: its task, its parameters, and the methods by which it reports."""

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
    """The checkpoint of an earlier attempt."""

    phase: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Reporter(Protocol):
    """The worker's side of a context. Its methods return at once. Their reports are written in the background, in
    order, and always before the result."""

    def progress(self, fraction: float, message: str) -> None: ...
    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None: ...
    def limit(self, seconds: float | None, message: str) -> None: ...


class ExternalCatalogue(Protocol):
    """The catalogue entries and tables of the external zone."""

    async def prepare(self, order: AssetOrder) -> dict[str, Any]:
        """Copy the tables of the order's revision, still hidden. Returns the entry for `publish`."""
        ...

    async def publish(self, order: AssetOrder, entry: Mapping[str, Any], files: Sequence[dict[str, Any]]) -> None:
        """Write the catalogue entry, replacing an earlier one."""
        ...

    async def withdraw(self, order: AssetOrder) -> bool:
        """Remove entry and tables. Returns whether there was an entry."""
        ...


async def _always(_job_id: str) -> bool:
    return True


async def _nothing(_report: str, _seconds: float) -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True)
class HandlerContext(Generic[ParamsT]):
    """The context of one task. `params` is an instance of the handler's model, or a dict if it has none."""

    task_id: str
    """The id of the task as pages and routes show it. In a stage job all attempts at a task have the same."""
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
    """The object store. Await its methods in an async handler; in others use those of `storage.sync`."""
    pool: Any = None
    """Database sessions. For async handlers."""
    database: DatabaseAccess = NO_DATABASE
    """The database URL. For handlers that are not async, which open and close their own session."""
    job_ended: Callable[[str], Awaitable[bool]] = _always
    """Whether another job has ended. For async handlers."""
    asset_report: Callable[[str, float], Awaitable[list[dict[str, Any]]]] = _nothing
    """Returns an operators' report about assets: `await ctx.asset_report("stuck", 3600)`. For async handlers."""
    orders: AssetOrders = NO_ORDERS
    """The orders about assets that geomill's own jobs carry out. For async handlers."""
    external: ExternalCatalogue | None = None
    """The external catalogue; None if there is no external database. For async handlers."""
    outcome_pages: OutcomePages = no_pages
    """Reads the pages for `item_outcomes`."""
    attempt_id: str = ""
    """The engine's id of this attempt. No other attempt has it."""

    @property
    def blob_repository(self) -> Storage:
        """The object store, under its earlier name."""
        return self.storage

    def with_params(self, params: OtherT) -> HandlerContext[OtherT]:
        """Return the same context with other parameters, for a handler that calls others."""
        return cast("HandlerContext[OtherT]", replace(self, params=params))  # type: ignore[arg-type]  # the type changes

    def item_outcomes(self, node_id: str, *, after: int = -1, having: str = "") -> list[ItemOutcome]:
        """Return the next page of outcomes of a fan-out of this job, beginning after the index `after`. The list is
        empty after the last page. With `having`, outcomes without this key in their output are left out. For handlers
        that are not async."""
        return outcomes_in(self.outcome_pages(node_id, after, having))

    def read_output(self, output: Any) -> Any:
        """Return an output as an item's handler returned it. A large output lies in the object store; a fan-in and
        `item_outcomes` give only its reference, `{"large_output": …}`, which is read here. Any other value is returned
        unchanged."""
        large = large_output(output)
        return output if large is None else large.value(self.storage.sync.read(large.name))

    async def read_output_async(self, output: Any) -> Any:
        """Does what `read_output` does, for async handlers."""
        large = large_output(output)
        return output if large is None else large.value(await self.storage.read(large.name))

    @property
    def cancelled(self) -> bool:
        """True once the job is cancelled or the worker must stop. Then save a checkpoint, and return or raise."""
        return self.is_cancelled()

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise HandlerError("the task was cancelled", code="cancelled")

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress, for example `progress(0.5)` or `progress(3, 10, "tile 3")`."""
        fraction = done if total is None else done / total if total else 1.0
        self.reporter.progress(min(max(fraction, 0.0), 1.0), message)

    @contextmanager
    def time_limit(self, seconds: float, message: str) -> Iterator[None]:
        """Fail the task without a retry if the block takes longer, with this message and the code `too_slow`. This also
        ends code that Python could not stop, such as a library that hangs. Blocks do not nest."""
        self.reporter.limit(seconds, message)
        try:
            yield
        finally:
            self.reporter.limit(None, "")

    def save_checkpoint(self, phase: str, data: Mapping[str, Any] | None = None) -> None:
        """Record that `phase` is done. The next attempt finds it in `checkpoint`."""
        self.reporter.checkpoint(phase, dict(data or {}))
