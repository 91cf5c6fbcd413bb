# Written by script/client from client/asynchronous. Change that, not this.
"""Operations of operators: processes, handlers, circuits, storage, settings, audit, schema and health."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from httpx_sse import ServerSentEvent

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
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


class OperatorOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def instances(self) -> list[InstanceDetails]:
        """Return orchestrators and workers with what each has done."""
        instances = self._connection.get(InstanceList, "/api/v1/instances")
        return instances.instances

    def follow_instances(self) -> Iterator[ServerSentEvent]:
        return self._connection.follow("/api/v1/instances/stream")

    def handlers(self) -> list[HandlerSummary]:
        handlers = self._connection.get(HandlerList, "/api/v1/handlers")
        return handlers.handlers

    def handler(self, name: str) -> HandlerDetails:
        """Return a handler with the schemas of its parameters and output."""
        return self._connection.get(HandlerDetails, path("/api/v1/handlers/{}", name))

    def circuits(self) -> list[CircuitView]:
        circuits = self._connection.get(CircuitList, "/api/v1/circuits")
        return circuits.circuits

    def close_circuit(self, handler: str) -> CircuitView:
        """Let the tasks of a handler begin again that were held back after failures."""
        return self._connection.post(CircuitView, path("/api/v1/circuits/{}/close", handler))

    def storage(self) -> StorageView:
        """Return the use of storage by zone."""
        return self._connection.get(StorageView, "/api/v1/storage")

    def asset_storage(self, **filters: Any) -> AssetUsagePage:
        return self._connection.get(AssetUsagePage, "/api/v1/storage/assets", **filters)

    def cleanup(self, **options: Any) -> CleanupView:
        """Return the old data that orchestrators delete next. Nothing is deleted by this."""
        return self._connection.get(CleanupView, "/api/v1/storage/cleanup", **options)

    def settings(self) -> list[SettingView]:
        """Return the settings of the gateway, without secrets."""
        settings = self._connection.get(SettingList, "/api/v1/settings")
        return settings.settings

    def audit(self, **filters: Any) -> OperatorAuditPage:
        """Return a page of the changes that operators have made, the newest first."""
        return self._connection.get(OperatorAuditPage, "/api/v1/audit", **filters)

    def ddl(self) -> str:
        return self._connection.get(str, "/api/v1/bootstrap/ddl")

    def migrate(self) -> dict[str, Any]:
        """Migrate the database to the schema of the gateway."""
        return self._connection.post(dict[str, Any], "/api/v1/bootstrap/migrate", confirm="yes")

    def health(self) -> dict[str, Any]:
        return self._connection.get(dict[str, Any], "/health")

    def live(self) -> None:
        """Raise `UnavailableError` unless the gateway answers."""
        self._connection.send("GET", "/health/live")
