from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from geomill.sdk import Storage
from geomill.sdk.testing import folder_storage
from geomill.store.pool import Pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, library


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path)


@pytest.fixture
async def platform(database: str, pool: Pool, storage: Storage) -> AsyncIterator[EnginePlatform]:
    """An orchestrator with the library, and zones in a folder. The worker is the test's affair."""
    new_platform = EnginePlatform(database, pool, library(), handlers_of(), storage)
    new_platform.orchestrator()
    yield new_platform
    await new_platform.shutdown()
