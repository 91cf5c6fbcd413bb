"""One table from our errors to HTTP."""

from __future__ import annotations

import pytest

from geomill.api.problems import status_of
from geomill.errors import (
    ConflictError,
    DatabaseUnreachable,
    GeomillError,
    IllegalTransition,
    InputsError,
    NotFoundError,
    WorkflowError,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFoundError("x"), 404),
        (InputsError("x"), 422),
        (WorkflowError("x"), 422),
        (ConflictError("x"), 409),
        (IllegalTransition("job", "a", "b", []), 409),
        (DatabaseUnreachable("x"), 503),
        (GeomillError("x"), 500),
    ],
)
def test_statuses(error: GeomillError, status: int) -> None:
    assert status_of(error) == status
