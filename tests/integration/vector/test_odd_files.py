"""Odd files become the tables that they should, value by value, or are refused. A look into the file says so before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from geomill.contract.inspection import Inspection, Severity
from geomill.inspection.task import inspect_file
from geomill.sdk import Storage
from geomill.sdk.testing import run_handler
from tests.corpus.vectors import ODD
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps

WAY_OUT = ("give ", "submit ", "save ", "put ", "convert ", "remove ", "rename ")


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


def look(storage: Storage, folder: Path, file_name: str, options: dict[str, Any]) -> Inspection:
    folder.mkdir()
    params = {
        "source": {"container_name": sources.CONTAINER, "file_name": file_name},
        "folder": str(folder),
        "data_type": "vector",
        "options": options,
        "copied_bytes": 100_000_000,
    }
    run = run_handler(inspect_file, params, storage=storage)
    assert run.success, run.error
    return Inspection.model_validate(run.output)


@pytest.mark.parametrize("what", ODD)
@pytest.mark.slow
def test_an_odd_file(steps: Steps, tmp_path: Path, what: str) -> None:
    odd = ODD[what]
    data = odd.make(tmp_path)
    sources.put(steps.storage, odd.file_name, data)
    inspection = look(steps.storage, tmp_path / "look", odd.file_name, odd.options)
    errors = [problem.code for problem in inspection.problems if problem.severity is Severity.ERROR]
    if odd.refused:
        run = steps.validate(odd.file_name, **odd.options)
        assert (run.ended.error_code, run.ended.retryable) == (odd.refused, False), run.error
        assert odd.refused in errors
        assert "damaged" not in run.error
        assert all(part in run.error for part in odd.told), run.error
        assert steps.tables() == set()
        return
    output = steps.publish(odd.file_name, **odd.options)
    assert errors == []
    with psycopg.connect(steps.url) as conn:
        rows = conn.execute(odd.query).fetchall()  # type: ignore[arg-type]
    assert rows == [pytest.approx(row) if isinstance(row[0], float) else row for row in odd.rows]
    for part in odd.told:
        assert any(part in warning for warning in output["warnings"]), output["warnings"]
    assert (Path(steps.storage.recipe.zones["bronze"]) / sources.CONTAINER / odd.file_name).read_bytes() == data
