"""A gateway with a store and, if wanted, an engine behind it; and callers of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from httpx import AsyncClient, Response

from geomill.domain.access.principal import Role
from geomill.domain.objectname import ObjectName, Zone
from geomill.storage import Storage
from tests.integration.api.conftest import bearing, eventually, make_key
from tests.integration.engine.platform import EnginePlatform

FAILING = """
workflow_id: failing
name: Failing
nodes:
  START: {type: start, next: bad}
  bad: {type: task, handler: fail, params: {error_message: "no luck", retryable: false}, next: END}
  END: {type: end}
"""
TIFF = b"II*\0" + bytes(range(256))
REFS = {"dataset_id": "IDN_lulc", "resource_id": "jakarta_2024", "version_id": "v1.0"}
ENDED = ("completed", "failed", "cancelled", "superseded")


def order(**changes: Any) -> dict[str, Any]:
    """A submission. None takes a field out."""
    fields: dict[str, Any] = {
        "platform_id": "ddh",
        "platform_refs": REFS,
        "data_type": "raster",
        "container_name": "uploads",
        "file_name": "a.tif",
        "workflow_id": "publish_file",
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not None}


@dataclass
class Counter:
    """Calls as an administrator, unless `by` says otherwise."""

    client: AsyncClient
    storage: Storage
    engine: EnginePlatform
    url: str

    async def key(self, *roles: Role, platform_id: str | None = None) -> dict[str, str]:
        return bearing(await make_key(self.url, *roles, platform_id=platform_id))

    async def post(self, action: str, body: Any = None, *, by: dict[str, str] | None = None, **query: Any) -> Response:
        return await self.client.post(f"/api/platform/{action}", json=body, params=query, headers=by)

    async def get(self, path: str, *, by: dict[str, str] | None = None, **query: Any) -> Response:
        return await self.client.get(path, params=query, headers=by)

    async def submit(self, **changes: Any) -> dict[str, Any]:
        answer = await self.post("submit", order(**changes))
        assert answer.status_code == 202, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def decide(self, action: str, **body: Any) -> dict[str, Any]:
        answer = await self.post(action, body)
        assert answer.status_code < 300, answer.text
        result: dict[str, Any] = answer.json()
        return result

    async def status(self, identifier: str) -> dict[str, Any]:
        answer = await self.get(f"/api/platform/status/{identifier}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def ended(self, identifier: str) -> dict[str, Any]:
        async def look() -> bool:
            return (await self.status(identifier))["status"] in ENDED

        await eventually(look)
        return await self.status(identifier)

    async def published(self, **changes: Any) -> dict[str, Any]:
        return await self.ended((await self.submit(**changes))["request_id"])

    async def put(self, name: str, content: bytes, zone: Zone = Zone.BRONZE, container: str = "uploads") -> None:
        await self.storage.put_bytes(ObjectName(zone, container, name), content)


def problem(answer: Response, status: int, code: str) -> dict[str, Any]:
    """A problem document with this status and code."""
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    return body
