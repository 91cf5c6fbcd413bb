from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.owners import Ownership, Split, owned_database, split_roles


@pytest.fixture
def ownership(server: str) -> Iterator[Ownership]:
    with owned_database(server) as ownership:
        yield ownership


@pytest.fixture(scope="session")
def split(server: str) -> Iterator[Split]:
    with split_roles(server) as split:
        yield split
