from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.owners import Ownership, owned_database


@pytest.fixture
def ownership(server: str) -> Iterator[Ownership]:
    with owned_database(server) as ownership:
        yield ownership
