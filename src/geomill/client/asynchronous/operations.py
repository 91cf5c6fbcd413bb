"""Operations of operators: processes, handlers, circuits, storage, settings, audit, schema and health."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from httpx_sse import ServerSentEvent

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.circuits import CircuitList, CircuitView
from geomill.contract.instances import HandlerDetails, HandlerList, HandlerSummary, InstanceDetails, InstanceList
from geomill.contract.operations import (
    AssetUsagePage,
    CleanupView,
    OperatorAuditPage,
    SettingList,
    SettingView,
    StorageView,
)


class AsyncOperatorOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def instances(self) -> list[InstanceDetails]:
        """Return orchestrators and workers with what each has done."""
        instances = await self._connection.get(InstanceList, "/api/v1/instances")
        return instances.instances

    def follow_instances(self) -> AsyncIterator[ServerSentEvent]:
        return self._connection.follow("/api/v1/instances/stream")

    async def handlers(self) -> list[HandlerSummary]:
        handlers = await self._connection.get(HandlerList, "/api/v1/handlers")
        return handlers.handlers

    async def handler(self, name: str) -> HandlerDetails:
        """Return a handler with the schemas of its parameters and output."""
        return await self._connection.get(HandlerDetails, path("/api/v1/handlers/{}", name))

    async def circuits(self) -> list[CircuitView]:
        circuits = await self._connection.get(CircuitList, "/api/v1/circuits")
        return circuits.circuits

    async def close_circuit(self, handler: str) -> CircuitView:
        """Let the tasks of a handler begin again that were held back after failures."""
        return await self._connection.post(CircuitView, path("/api/v1/circuits/{}/close", handler))

    async def storage(self) -> StorageView:
        """Return the use of storage by zone."""
        return await self._connection.get(StorageView, "/api/v1/storage")

    async def asset_storage(self, **filters: Any) -> AssetUsagePage:
        return await self._connection.get(AssetUsagePage, "/api/v1/storage/assets", **filters)

    async def cleanup(self, **options: Any) -> CleanupView:
        """Return the old data that orchestrators delete next. Nothing is deleted by this."""
        return await self._connection.get(CleanupView, "/api/v1/storage/cleanup", **options)

    async def settings(self) -> list[SettingView]:
        """Return the settings of the gateway, without secrets."""
        settings = await self._connection.get(SettingList, "/api/v1/settings")
        return settings.settings

    async def audit(self, **filters: Any) -> OperatorAuditPage:
        """Return a page of the changes that operators have made, the newest first."""
        return await self._connection.get(OperatorAuditPage, "/api/v1/audit", **filters)

    async def ddl(self) -> str:
        return await self._connection.get(str, "/api/v1/bootstrap/ddl")

    async def migrate(self) -> dict[str, Any]:
        """Migrate the database to the schema of the gateway."""
        return await self._connection.post(dict[str, Any], "/api/v1/bootstrap/migrate", confirm="yes")

    async def health(self) -> dict[str, Any]:
        return await self._connection.get(dict[str, Any], "/health")

    async def live(self) -> None:
        """Raise `UnavailableError` unless the gateway answers."""
        await self._connection.send("GET", "/health/live")
