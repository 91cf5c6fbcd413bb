"""Orders: jobs of geomill that carry out a decision about an asset.

Handlers that export, withdraw or delete get only the id of an asset. The data that they change follows from the asset's
row, and each step checks that the order is still the asset's current one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from geomill.domain.assets.asset import DataType
from geomill.domain.engine.job import JobPurpose
from geomill.sdk.result import HandlerError


@dataclass(frozen=True, slots=True)
class AssetOrder:
    """An order. `revision` is the public revision of an export, the last revision to delete, or the current revision of
    a withdrawal."""

    asset_id: str
    data_type: DataType
    blob_stem: str
    table_stem: str
    revision: int
    own_styles: Mapping[str, Any] | None = None
    """The styles of the asset, if the order is an export."""


class AssetOrders(Protocol):
    def holding(self, asset_id: str, job_id: str, purpose: JobPurpose) -> AbstractAsyncContextManager[AssetOrder]:
        """Lock the asset and return the order of this job. Decisions about the asset wait until the context ends, so
        keep it short. Raises `HandlerError` if the order is no longer the current one."""
        ...

    async def current(self, asset_id: str, job_id: str, purpose: JobPurpose) -> AssetOrder:
        """Return the order of this job. Raises `HandlerError` if it is not the current one at this moment."""
        ...

    async def count_files(self, order: AssetOrder) -> int:
        """Return how many files the order's revision has."""
        ...

    async def files(self, order: AssetOrder, first: int = 0, count: int | None = None) -> list[dict[str, Any]]:
        """Return a part of the inventory of the order's revision."""
        ...

    async def containers(self, order: AssetOrder) -> list[str]:
        """Return the containers in silver that have files of the asset."""
        ...

    async def drop_tables(self, asset_id: str, job_id: str) -> list[str]:
        """Drop the tables of the revisions to delete. Returns their names."""
        ...


class _NoOrders:
    """For contexts without a platform, in which there are no orders."""

    def _none(self, *_of: object, **_which: object) -> NoReturn:
        raise HandlerError("there are no orders about assets here", code="order_superseded", retryable=False)

    holding = current = count_files = files = containers = drop_tables = _none


NO_ORDERS: AssetOrders = _NoOrders()
