"""A store that throttles, breaks off or falls silent while GDAL reads pixels: tried again, or an error after which the
task may be tried again; nothing half made is seen, and the next attempt is right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest
from rasterio.io import MemoryFile

from geomill.handlers.raster.create_cog import create_cog
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import HandlerRun, run_handler
from tests.integration.raster import sources
from tests.integration.raster.steps import validated
from tests.integration.storage.conftest import azure_recipe
from tests.integration.storage.proxy import Kind, Proxy, ProxyFault, proxied
from tests.integration.storage.servers import azurite, make_container

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Connections are cut on purpose, and a loop that ends just then complains of the rest."""

SOURCE = ObjectName(Zone.BRONZE, sources.CONTAINER, "a.tif")
PIXELS = sources.rgb(900)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with azurite(tmp_path_factory.mktemp("azurite")) as url:
        for container in (sources.CONTAINER, "cogs"):
            make_container(url, container)
        yield url


@pytest.fixture
async def behind(endpoint: str) -> AsyncIterator[tuple[Proxy, Storage]]:
    async with proxied(endpoint) as proxy:
        recipe = azure_recipe(proxy.url, f"{uuid4().hex[:8]}/")
        yield proxy, Storage(replace(recipe, timeout_seconds=2, retry_seconds=5))


@pytest.mark.parametrize("kind", ["busy", "refuse", "cut answer", pytest.param("hang", marks=pytest.mark.slow)])
async def test_trouble_while_pixels_are_read(behind: tuple[Proxy, Storage], kind: Kind) -> None:
    proxy, storage = behind
    await storage.put_bytes(SOURCE, PIXELS.encode())
    validation = await asyncio.to_thread(validated, storage)
    params = {
        "source": validation["source"],
        "facts": validation["facts"],
        "blob_prefix": "one",
        "target_crs": "source",
    }

    def attempt() -> HandlerRun:
        return run_handler(create_cog, params, storage=storage)

    proxy.faults.append(ProxyFault(kind, r"(?s)GET .*a\.tif.*User-Agent: GDAL.*bytes=[1-9]", times=2))
    first = await asyncio.to_thread(attempt)
    assert proxy.hit
    assert kind != "busy" or first.success  # GDAL waits and asks again
    if not first.success:
        assert first.ended.retryable, first.ended
        assert "a.tif" in (first.error or "")
        assert not [info.name.path async for info in storage.list(Zone.SILVER, "cogs", "")]
    proxy.faults.clear()
    output = first.output if first.success else (await asyncio.to_thread(attempt)).output
    data = await storage.read(ObjectName.parse(f"silver/{output['blob_path']}"))
    with MemoryFile(data) as memory, memory.open() as dataset:
        np.testing.assert_array_equal(dataset.read(), PIXELS.data)
