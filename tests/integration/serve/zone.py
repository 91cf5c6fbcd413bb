"""A zone with its services, and assets put straight into its tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from geomill.domain.access.principal import Role
from geomill.domain.access.signed_link import LinkKey
from geomill.domain.objectname import Zone
from geomill.platform.extracts import ExtractOffice
from geomill.serve.app import create_serving_app
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.storage import Storage
from geomill.store.pool import Pool, open_pool
from tests.integration.api.conftest import bearing, make_key

BASE = "http://127.0.0.1:8001"
KEY = LinkKey(b"a key of the tests, long enough for all")


def id_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


@dataclass
class House:
    url: str
    storage: Storage
    pool: Pool
    app: FastAPI
    client: AsyncClient
    keys: dict[str, dict[str, str]] = field(default_factory=dict)

    zone = Zone.SILVER

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, storage: Storage, office: ExtractOffice | None = None) -> AsyncIterator[Self]:
        services = Services(cls.zone, url, storage, KEY, office)
        app = create_serving_app(services, url, AccessSettings(), hosts=("127.0.0.1",))
        transport = ASGITransport(app=app, raise_app_exceptions=False)
        async with open_pool(url, size=2) as pool:
            await cls.prepare(pool)
            async with app.router.lifespan_context(app), AsyncClient(transport=transport, base_url=BASE) as client:
                yield cls(url, storage, pool, app, client)

    @classmethod
    async def prepare(cls, pool: Pool) -> None:
        async with pool.connection() as conn:
            await conn.execute("CREATE SCHEMA IF NOT EXISTS geo")
            await conn.execute(
                "INSERT INTO app.platforms (platform_id, display_name, required_refs) VALUES ('other', 'Other', '[]')"
            )

    async def key(self, *roles: Role, platform_id: str | None = None) -> dict[str, str]:
        """Headers."""
        name = f"{','.join(roles)}/{platform_id}"
        if name not in self.keys:
            self.keys[name] = bearing(await make_key(self.url, *roles, platform_id=platform_id))
        return self.keys[name]

    async def publish(self, name: str, data_type: str = "raster", **columns: Any) -> str:
        """An asset whose first revision is served: public, unless said otherwise."""
        outputs = columns.pop("outputs", {})
        row = {
            "asset_id": id_of(name),
            "platform_id": "ddh",
            "platform_refs": json.dumps({"dataset_id": name, "resource_id": "r", "version_id": "v1"}),
            "data_type": data_type,
            "table_stem": name,
            "blob_stem": name,
            "stac_item_id": name,
            "stac_collection_id": "tests",
            "served_revision": 1,
            "approval_state": "approved",
            "clearance_state": "public",
            "outputs": json.dumps(outputs),
            **columns,
        }
        names = ", ".join(row)
        places = ", ".join(f"%({column})s" for column in row)
        async with self.pool.connection() as conn:
            await conn.execute(f"INSERT INTO app.geospatial_assets ({names}) VALUES ({places})", row)
        return str(row["asset_id"])

    async def execute(self, query: str, *values: Any) -> None:
        async with self.pool.connection() as conn:
            await conn.execute(query, values)


class ExternalServer(House):
    zone = Zone.EXTERNAL

    @classmethod
    async def prepare(cls, pool: Pool) -> None:
        async with pool.connection() as conn:
            await conn.execute("CREATE SCHEMA geo")
            await conn.execute("CREATE SCHEMA external")
            await conn.execute(
                "CREATE TABLE external.assets (asset_id text PRIMARY KEY, revision integer, platform_id text,"
                " title text, data_type text, blob_path text, table_name text, outputs jsonb,"
                " exported_at timestamptz DEFAULT now())"
            )

    async def publish(self, name: str, data_type: str = "raster", **columns: Any) -> str:
        row = {
            "asset_id": id_of(name), "revision": 1, "platform_id": "ddh", "title": name, "data_type": data_type,
            "blob_path": columns.get("blob_path"), "table_name": columns.get("table_name"),
            "outputs": json.dumps(columns.get("outputs", {})),
        }  # fmt: skip
        names, places = ", ".join(row), ", ".join(f"%({column})s" for column in row)
        async with self.pool.connection() as conn:
            await conn.execute(f"INSERT INTO external.assets ({names}) VALUES ({places})", row)
        return str(row["asset_id"])
