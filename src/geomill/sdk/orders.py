"""Orders: decisions about an asset that a job of the house carries out.

Handlers that export, withdraw or delete take the id of an asset and nothing else. What they touch follows from the
asset's row, and each step asks whether the order is still the asset's current one.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from geomill.domain.assets.asset import DataType
from geomill.domain.engine.job import JobPurpose
from geomill.sdk.result import HandlerError


@dataclass(frozen=True, slots=True)
class AssetOrder:
    """`revision` is the public one of an export, the last one that is deleted, or the current one of a withdrawal."""

    asset_id: str
    data_type: DataType
    blob_stem: str
    table_stem: str
    revision: int


class AssetOrders(Protocol):
    def holding(self, asset_id: str, job_id: str, purpose: JobPurpose) -> AbstractAsyncContextManager[AssetOrder]:
        """The order of this job. Until the context ends, decisions about the asset wait: hold it for moments only.
        Raises a `HandlerError` if the order is no longer the current one."""
        ...

    async def current(self, asset_id: str, job_id: str, purpose: JobPurpose) -> AssetOrder:
        """The order of this job, if it is the current one at this moment."""
        ...

    async def count_files(self, order: AssetOrder) -> int:
        """How many files the order's revision has."""
        ...

    async def files(self, order: AssetOrder, first: int = 0, count: int | None = None) -> list[dict[str, Any]]:
        """A part of the inventory of the order's revision."""
        ...

    async def containers(self, order: AssetOrder) -> list[str]:
        """Containers in silver that hold files of the asset."""
        ...

    async def drop_tables(self, asset_id: str, job_id: str) -> list[str]:
        """Drop the tables of the revisions that are to be deleted. Their names."""
        ...


class _NoOrders:
    """For contexts without a platform: there is no decision to carry out."""

    def _none(self, *_of: object, **_which: object) -> NoReturn:
        raise HandlerError("there are no decisions about assets here", code="order_superseded", retryable=False)

    holding = current = count_files = files = containers = drop_tables = _none


NO_ORDERS: AssetOrders = _NoOrders()
