"""Zones live as long as a module of tests: putting the services together takes longer than most tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from geomill.sdk.testing import folder_storage
from geomill.storage import Storage
from tests.databases import copied
from tests.integration.serve.zone import ExternalServer, House


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    return folder_storage(tmp_path_factory.mktemp("zones"))


@pytest.fixture(scope="module")
def outer_database(server: str, bare_template: str) -> Iterator[str]:
    with copied(server, bare_template) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(module_database: str, shelf: Storage) -> AsyncIterator[House]:
    """The internal zone, with a client that shows no credential."""
    async with House.open(module_database, shelf) as open_house:
        yield open_house


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outside(outer_database: str, shelf: Storage) -> AsyncIterator[ExternalServer]:
    """The external zone."""
    async with ExternalServer.open(outer_database, shelf) as open_zone:
        yield open_zone
