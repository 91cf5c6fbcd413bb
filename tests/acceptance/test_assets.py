"""The life of an asset, as people type it: `geomill up` and the real commands, with both zones looked at."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Geomill, data_folder
from tests.acceptance.installation import Installation, installation_in
from tests.acceptance.running import children, eventually
from tests.prepared import copy_prepared

pytestmark = pytest.mark.slow
TIFF = b"II*\0" + bytes(range(256)) * 40
STEM = "idnlulc/jakarta2024/v10"


@pytest.fixture(scope="module")
def installation(geomill: Geomill) -> Iterator[Installation]:
    with data_folder() as data:
        copy_prepared(data)
        with installation_in(data, geomill) as installation:
            yield installation


def submit(installation: Installation, name: str, content: bytes, *more: str) -> Any:
    file = installation.data.parent / "jakarta.tif"
    file.write_bytes(content)
    refs = ("--ref", f"dataset_id={name}", "--ref", "resource_id=jakarta_2024", "--ref", "version_id=v1.0")
    order = ("submit", str(file), "--data-type", "raster", "--workflow", "publish_file", *refs)
    return installation.run(*order, *more, "--wait")


def test_a_whole_life(installation: Installation) -> None:
    before = installation.zone("silver")
    first = submit(installation, "IDN_lulc", TIFF)
    asset_id = first["asset_id"]
    assert first["status"] == "completed"
    assert installation.states(asset_id) == (1, "completed", "pending_review", "uncleared", None, True)
    assert installation.zone("silver") == before | {f"published/{STEM}/_r1/jakarta.tif": TIFF}
    assert installation.outside() == {}

    installation.run("approve", first["request_id"], "--clearance", "ouo", "--expected-revision", "1")
    assert installation.states(asset_id) == (1, "completed", "approved", "ouo", None, True)
    assert installation.outside() == {}

    installation.ended(installation.run("approve", asset_id, "--clearance", "public"))
    assert installation.states(asset_id) == (1, "completed", "approved", "public", 1, True)
    assert installation.outside() == {f"public/{STEM}/_r1/jakarta.tif": TIFF}

    second = submit(installation, "IDN_lulc", TIFF + b"2", "--overwrite")
    assert installation.states(asset_id) == (2, "completed", "pending_review", "uncleared", 1, True)
    assert installation.outside() == {f"public/{STEM}/_r1/jakarta.tif": TIFF}, "the old one is still outside"
    refused = installation.geomill(
        "assets", "approve", first["request_id"], "--clearance", "ouo", GEOMILL_DATA=str(installation.data)
    )
    assert refused.code != 0
    assert "earlier revision" in refused.err

    installation.ended(installation.run("approve", second["job_id"], "--clearance", "public"))
    assert installation.outside() == {f"public/{STEM}/_r2/jakarta.tif": TIFF + b"2"}

    installation.run("rollback", asset_id, "--to", "1", "--reason", "clouds")
    assert installation.states(asset_id) == (3, "completed", "pending_review", "uncleared", 2, True)
    assert installation.outside() == {f"public/{STEM}/_r2/jakarta.tif": TIFF + b"2"}
    installation.ended(installation.run("approve", asset_id, "--clearance", "public", "--expected-revision", "3"))
    assert installation.outside() == {f"public/{STEM}/_r3/jakarta.tif": TIFF}

    installation.ended(installation.run("unpublish", asset_id, "--reason", "over"))
    assert installation.states(asset_id) == (3, "completed", "approved", "public", None, False)
    assert installation.zone("external") == {}
    files = {f"published/{STEM}/_r{number}/jakarta.tif" for number in (1, 2)}
    assert set(installation.zone("silver")) == set(before) | files

    submit(installation, "IDN_lulc", TIFF + b"4")
    assert installation.states(asset_id) == (4, "completed", "pending_review", "uncleared", None, True)
    details = installation.run("show", asset_id)
    assert [revision["revision"] for revision in reversed(details["revisions"])] == [1, 2, 3]
    assert [entry["decision"] for entry in reversed(details["audit"])] == [
        "submitted",
        "approved",
        "clearance_changed",
        "overwritten",
        "approved",
        "rolled_back",
        "approved",
        "unpublished",
        "reactivated",
    ]
    assert {job["status"] for job in details["jobs"]} == {"completed"}


def test_an_export_ends_whoever_is_killed(installation: Installation) -> None:
    content = TIFF * 4000  # some megabytes, so that there is time to kill
    asset_id = submit(installation, "killed", content)["asset_id"]
    for role in ("worker", "orchestrator"):
        before = children(installation.process.pid)
        decision = installation.run("approve", asset_id, "--clearance", "public")
        os.kill(before[role], signal.SIGKILL)
        installation.ended(decision)
        assert installation.outside() == {"public/killed/jakarta2024/v10/_r1/jakarta.tif": content}
        eventually(
            lambda role=role, old=before: children(installation.process.pid).get(role) not in (None, old[role]), role
        )
        installation.ended(installation.run("approve", asset_id, "--clearance", "ouo"))
        assert installation.outside() == {}
