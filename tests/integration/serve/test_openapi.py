"""The documents of the mounted services: whatever schemathesis makes of them, no answer is our fault.

The seed is fixed. `TEST_SEED=random` looks for new cases, `TEST_EXAMPLES` for more of them. A failure names its seed,
with which it can be repeated.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import pytest_asyncio
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from morecantile import tms as grids
from schemathesis import GenerationMode

from geomill.cli.serving import configuration
from geomill.domain.objectname import Zone
from geomill.serve.app import create_serving_app
from geomill.serve.directory import Directory
from geomill.serve.services import Services
from geomill.serve.viewer.app import create_viewer_app
from geomill.settings import AccessSettings, ConnectionSettings
from geomill.storage import Storage
from tests.integration.catalogue.conftest import an_item
from tests.integration.raster import sources
from tests.integration.serve.stac.conftest import put_asset
from tests.integration.serve.test_rasters import MIDDLE, put_raster
from tests.integration.serve.test_rasters import published as published_raster
from tests.integration.serve.test_vectors import published
from tests.integration.serve.zone import KEY, House

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore"),  # numpy and rio-tiler warn of what callers ask for
]

CHOSEN = os.environ.get("TEST_SEED", "2026")
SEED = random.randrange(1 << 32) if CHOSEN == "random" else int(CHOSEN)
EXAMPLES = int(os.environ.get("TEST_EXAMPLES", "3"))
DOCUMENTS = {"stac": "/stac/api", "raster": "/raster/openapi.json", "vector": "/vector/api"}
MODES = list(GenerationMode)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def path_values(house: House, shelf: Storage) -> dict[str, str]:
    """Parameters of paths that lead somewhere."""
    heights = sources.SyntheticRaster(sources.noise((1, 300, 300), "float32", 0, 1000), nodata=-9999)
    raster = await published_raster(house, "heights", put_raster(shelf, heights, "heights"), "dem")
    _, vector = await published(house)
    async with house.pool.connection() as conn:
        await put_asset(conn, "item", "ddh", "public", "collection", an_item())
    return {
        "asset_id": raster.rpartition("/")[2],
        "collectionId": vector,
        "itemId": "3",
        "collection_id": "collection",
        "item_id": "item",
        "tileMatrixSetId": "WebMercatorQuad",
        **dict(zip(("x", "y", "z"), map(str, grids.get("WebMercatorQuad").tile(*MIDDLE, 10)), strict=True)),
        **dict(zip(("minx", "miny", "maxx", "maxy"), ("15.0", "45.1", "15.1", "45.2"), strict=True)),
        **dict(zip(("lon", "lat"), map(str, MIDDLE), strict=True)),
        "width": "64",
        "height": "64",
        "format": "png",
    }


@pytest.fixture(scope="module")
def url(module_database: str, shelf: Storage) -> Iterator[str]:
    """The services on a real socket, in a thread of their own."""
    services = Services(Zone.SILVER, module_database, shelf, KEY)
    config = configuration(create_serving_app(services, module_database, AccessSettings()), ConnectionSettings())
    config.port = 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def document_of(service: str, url: str, house: House) -> dict[str, Any]:
    if service == "viewer":  # it publishes none
        return create_viewer_app(Directory(house.pool, Zone.SILVER)).openapi()
    document: dict[str, Any] = httpx.get(url + DOCUMENTS[service], timeout=60).raise_for_status().json()
    return document


def failures(strategy: Any, base_url: str) -> list[str]:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def run(case: Any) -> None:
        answer = case.call(base_url=base_url)
        if answer.status_code >= 500:
            messages.append(f"{answer.status_code} {answer.text[:200]}\n{case.as_curl_command()[:1000]}")

    messages: list[str] = []
    with suppress(Unsatisfiable):  # nothing can be wrong about a route that takes nothing
        run()
    return messages


def places(operation: Any, path_values: dict[str, str]) -> dict[str, str]:
    return {
        parameter.name: path_values[parameter.name]
        for parameter in operation.path_parameters
        if parameter.name in path_values
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("service", [*DOCUMENTS, "viewer"])
async def test_no_answer_is_our_fault(
    house: House, path_values: dict[str, str], url: str, service: str, mode: GenerationMode
) -> None:
    wrong: list[str] = []
    operations = 0
    for result in schemathesis.openapi.from_dict(document_of(service, url, house)).get_all_operations():
        operation = result.ok()
        operations += 1
        options: dict[str, Any] = {"generation_mode": mode}
        if (path := places(operation, path_values)) and mode is GenerationMode.POSITIVE:
            options["path_parameters"] = path
        wrong += failures(operation.as_strategy(**options), f"{url}/{service}")
    assert "\n\n".join(wrong) == "", f"TEST_SEED={SEED}"
    assert operations > 1
