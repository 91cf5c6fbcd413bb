"""The life of an asset, as people type it: `geomill up` and the real commands, with both zones looked at."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Geomill
from tests.acceptance.test_up import children, client_of, eventually, free_port, is_ready, running

TIFF = b"II*\0" + bytes(range(256)) * 40
REFS = ("--ref", "dataset_id=IDN_lulc", "--ref", "resource_id=jakarta_2024", "--ref", "version_id=v1.0")
STEM = "idnlulc/jakarta2024/v10"


@dataclass
class Town:
    """A running geomill, its data folder, and the command."""

    process: subprocess.Popen[bytes]
    data: Path
    geomill: Geomill

    def run(self, *arguments: str) -> Any:
        done = self.geomill("assets", *arguments, "--json", GEOMILL_DATA=str(self.data))
        assert done.code == 0, done.err + done.out
        return done.json

    def submit(self, content: bytes, *more: str) -> Any:
        file = self.data.parent / "jakarta.tif"
        file.write_bytes(content)
        order = ("submit", str(file), "--data-type", "raster", "--workflow", "publish_file", *REFS)
        return self.run(*order, *more, "--wait")

    def states(self, asset_id: str) -> tuple[Any, ...]:
        found = self.run("show", asset_id)
        names = ("revision", "processing_status", "approval_state", "clearance_state", "external_revision")
        return (*(found[name] for name in names), found["deleted_at"] is None)

    def zone(self, name: str) -> dict[str, bytes]:
        """Every file of an asset in a zone, with its bytes."""
        files = [path for path in (self.data / name).rglob("*") if path.is_file() and ".uploads" not in path.parts]
        return {str(path.relative_to(self.data / name)): path.read_bytes() for path in files}

    def outside(self) -> dict[str, bytes]:
        """Without the manifest."""
        return {name: content for name, content in self.zone("external").items() if not name.endswith("_manifest.json")}

    def ended(self, made: Any) -> None:
        """The export or withdrawal that a decision has started."""
        assert self.run("status", made["export_job_id"], "--wait")["status"] == "completed"


@pytest.fixture
def town(data: Path, geomill: Geomill) -> Iterator[Town]:
    port = free_port()
    with running(data, port) as process, client_of(port) as client:
        eventually(lambda: is_ready(client), "ready", patience=120)
        yield Town(process, data, geomill)


def test_a_whole_life(town: Town) -> None:
    first = town.submit(TIFF)
    asset_id = first["asset_id"]
    assert first["status"] == "completed"
    assert town.states(asset_id) == (1, "completed", "pending_review", "uncleared", None, True)
    assert town.zone("silver") == {f"published/{STEM}/_r1/jakarta.tif": TIFF}
    assert town.outside() == {}

    town.run("approve", first["request_id"], "--clearance", "ouo", "--expected-revision", "1")
    assert town.states(asset_id) == (1, "completed", "approved", "ouo", None, True)
    assert town.outside() == {}

    town.ended(town.run("approve", asset_id, "--clearance", "public"))
    assert town.states(asset_id) == (1, "completed", "approved", "public", 1, True)
    assert town.outside() == {f"public/{STEM}/_r1/jakarta.tif": TIFF}

    second = town.submit(TIFF + b"2", "--overwrite")
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
    assert set(town.zone("silver")) == {f"published/{STEM}/_r{number}/jakarta.tif" for number in (1, 2)}

    town.submit(TIFF + b"4")
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
    asset_id = town.submit(content)["asset_id"]
    for role in ("worker", "orchestrator"):
        before = children(town.process.pid)
        made = town.run("approve", asset_id, "--clearance", "public")
        os.kill(before[role], signal.SIGKILL)
        town.ended(made)
        assert town.outside() == {f"public/{STEM}/_r1/jakarta.tif": content}
        eventually(lambda role=role, old=before: children(town.process.pid).get(role) not in (None, old[role]), role)
        town.ended(town.run("approve", asset_id, "--clearance", "ouo"))
        assert town.outside() == {}
