from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from geomill.domain.engine.message import TASK_QUEUES
from geomill.sdk import Storage
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import folder_storage
from geomill.store.pool import Pool
from geomill.workflows.collection import WorkflowCatalogue
from tests.integration.engine.platform import Platform


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path)


@pytest.fixture
async def platform(database: str, pool: Pool, storage: Storage) -> AsyncIterator[Platform]:
    """An orchestrator with the library, and zones in a folder. The worker is the test's affair."""
    registry = load_handlers()
    catalogue = WorkflowCatalogue.load([], handlers=registry.info, queues=TASK_QUEUES)
    made = Platform(database, pool, catalogue, registry, storage)
    made.orchestrator()
    yield made
    await made.shutdown()
