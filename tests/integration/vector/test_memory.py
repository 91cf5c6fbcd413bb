"""Memory is bounded, whatever the size of a file. Each is read by a process of its own, whose peak counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from geomill.sdk import Storage
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps, copies, ok

FEATURE = (
    '{"type":"Feature","properties":{"name":"somewhere","value":1.25,"more":{"a":[1,2,3]},"note":"' + "x" * 200 + '"},'
    '"geometry":{"type":"Polygon","coordinates":[[[5.1,45.1],[5.2,45.1],[5.2,45.2],[5.1,45.2],[5.1,45.1]]]}}'
)


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


def collection(features: int) -> bytes:
    return f'{{"type":"FeatureCollection","features":[{",".join([FEATURE] * features)}]}}'.encode()


def measured(folder: Path, storage: Storage, features: int) -> tuple[int, ...]:
    folder.mkdir()
    sources.put(storage, f"{features}.geojson", collection(features))
    program = [sys.executable, "-m", "tests.integration.vector.reading"]
    command = [*program, str(folder.parent), f"{features}.geojson", f"job-{features}"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(int, ended.stdout.split()))


@pytest.mark.slow
def test_a_large_geojson_takes_no_more_than_a_small_one(storage: Storage, tmp_path: Path) -> None:
    small, few, _ = measured(tmp_path / "small", storage, 60_000)
    large, many, groups = measured(tmp_path / "large", storage, 160_000)
    assert (few, many) == (60_000, 160_000)
    assert groups >= 8, "chunks can begin in the middle"
    assert large - small < 50, f"{small} MB and {large} MB"
    assert large < 600


@pytest.mark.slow
def test_a_source_is_read_in_order_once(steps: Steps) -> None:
    """The validation reads the source and makes a copy in which chunks can begin in the middle. The copy is deleted
    with the job."""
    sources.put(steps.storage, "a.geojson", collection(45_000))
    plan, chunks = steps.planned("a.geojson", chunk_rows=20_000)
    assert [(chunk["start"], chunk["stop"]) for chunk in chunks] == [(0, 1), (1, 2), (2, 3)]
    (copy,) = copies(steps.job_id)
    modified_at = copy.stat().st_mtime_ns
    loaded = [ok(steps.load(plan, chunk)) for chunk in reversed(chunks)]
    assert sum(load["read"] for load in loaded) == 45_000
    assert copy.stat().st_mtime_ns == modified_at


def test_a_lone_geometry_that_is_too_large_is_refused_before_it_is_read(steps: Steps) -> None:
    point = '{"type":"Point","coordinates":[5.1234567,45.1234567]}'
    points = ",".join([point] * (16_000_000 // len(point)))
    sources.put(steps.storage, "a.geojson", f'{{"type":"GeometryCollection","geometries":[{points}]}}'.encode())
    run = steps.validate("a.geojson")
    assert (run.ended.error_code, run.ended.retryable) == ("geometry_too_large", False)
    assert "collection of features" in run.error
