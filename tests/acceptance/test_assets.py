"""The life of an asset, as people type it: `geomill up` and the real commands, with both zones looked at."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Geomill, data_folder
from tests.acceptance.running import children, eventually
from tests.acceptance.town import Town, town_in
from tests.prepared import copy_prepared

pytestmark = pytest.mark.slow
TIFF = b"II*\0" + bytes(range(256)) * 40
STEM = "idnlulc/jakarta2024/v10"


@pytest.fixture(scope="module")
def town(geomill: Geomill) -> Iterator[Town]:
    with data_folder() as data:
        copy_prepared(data)
        with town_in(data, geomill) as town:
            yield town


def submit(town: Town, name: str, content: bytes, *more: str) -> Any:
    file = town.data.parent / "jakarta.tif"
    file.write_bytes(content)
    refs = ("--ref", f"dataset_id={name}", "--ref", "resource_id=jakarta_2024", "--ref", "version_id=v1.0")
    order = ("submit", str(file), "--data-type", "raster", "--workflow", "publish_file", *refs)
    return town.run(*order, *more, "--wait")


def test_a_whole_life(town: Town) -> None:
    before = town.zone("silver")
    first = submit(town, "IDN_lulc", TIFF)
    asset_id = first["asset_id"]
    assert first["status"] == "completed"
    assert town.states(asset_id) == (1, "completed", "pending_review", "uncleared", None, True)
    assert town.zone("silver") == before | {f"published/{STEM}/_r1/jakarta.tif": TIFF}
    assert town.outside() == {}

    town.run("approve", first["request_id"], "--clearance", "ouo", "--expected-revision", "1")
    assert town.states(asset_id) == (1, "completed", "approved", "ouo", None, True)
    assert town.outside() == {}

    town.ended(town.run("approve", asset_id, "--clearance", "public"))
    assert town.states(asset_id) == (1, "completed", "approved", "public", 1, True)
    assert town.outside() == {f"public/{STEM}/_r1/jakarta.tif": TIFF}

    second = submit(town, "IDN_lulc", TIFF + b"2", "--overwrite")
    assert town.states(asset_id) == (2, "completed", "pending_review", "uncleared", 1, True)
    assert town.outside() == {f"public/{STEM}/_r1/jakarta.tif": TIFF}, "the old one is still outside"
    refused = town.geomill("assets", "approve", first["request_id"], "--clearance", "ouo", GEOMILL_DATA=str(town.data))
    assert refused.code != 0
    assert "earlier revision" in refused.err

    town.ended(town.run("approve", second["job_id"], "--clearance", "public"))
    assert town.outside() == {f"public/{STEM}/_r2/jakarta.tif": TIFF + b"2"}

    town.run("rollback", asset_id, "--to", "1", "--reason", "clouds")
    assert town.states(asset_id) == (3, "completed", "pending_review", "uncleared", 2, True)
    assert town.outside() == {f"public/{STEM}/_r2/jakarta.tif": TIFF + b"2"}
    town.ended(town.run("approve", asset_id, "--clearance", "public", "--expected-revision", "3"))
    assert town.outside() == {f"public/{STEM}/_r3/jakarta.tif": TIFF}

    town.ended(town.run("unpublish", asset_id, "--reason", "over"))
    assert town.states(asset_id) == (3, "completed", "approved", "public", None, False)
    assert town.zone("external") == {}
    files = {f"published/{STEM}/_r{number}/jakarta.tif" for number in (1, 2)}
    assert set(town.zone("silver")) == set(before) | files

    submit(town, "IDN_lulc", TIFF + b"4")
    assert town.states(asset_id) == (4, "completed", "pending_review", "uncleared", None, True)
    details = town.run("show", asset_id)
    assert [one["revision"] for one in reversed(details["revisions"])] == [1, 2, 3]
    assert [one["decision"] for one in reversed(details["audit"])] == [
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
    assert {one["status"] for one in details["jobs"]} == {"completed"}


def test_an_export_ends_whoever_is_killed(town: Town) -> None:
    content = TIFF * 4000  # some megabytes, so that there is time to kill
    asset_id = submit(town, "killed", content)["asset_id"]
    for role in ("worker", "orchestrator"):
        before = children(town.process.pid)
        made = town.run("approve", asset_id, "--clearance", "public")
        os.kill(before[role], signal.SIGKILL)
        town.ended(made)
        assert town.outside() == {"public/killed/jakarta2024/v10/_r1/jakarta.tif": content}
        eventually(lambda role=role, old=before: children(town.process.pid).get(role) not in (None, old[role]), role)
        town.ended(town.run("approve", asset_id, "--clearance", "ouo"))
        assert town.outside() == {}
