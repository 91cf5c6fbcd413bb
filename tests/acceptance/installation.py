"""A running platform, with the command and the administrator's key, and what can be seen of its assets."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.conftest import Geomill
from tests.acceptance.running import ready, show_key


@dataclass
class Installation:
    """A running geomill, its data folder, the command, and a client of the gateway with the administrator's key."""

    process: subprocess.Popen[bytes]
    data: Path
    geomill: Geomill
    client: httpx.Client

    def run(self, *arguments: str) -> Any:
        done = self.geomill("assets", *arguments, "--json", GEOMILL_DATA=str(self.data))
        assert done.code == 0, done.err + done.out
        return done.json

    def show(self, asset_id: str) -> Any:
        """Return what `geomill assets show` prints, without the time that a command takes to start."""
        answer = self.client.get(f"/api/assets/{asset_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def states(self, asset_id: str) -> tuple[Any, ...]:
        asset = self.show(asset_id)
        names = ("revision", "processing_status", "approval_state", "clearance_state", "external_revision")
        return (*(asset[name] for name in names), asset["deleted_at"] is None)

    def zone(self, name: str) -> dict[str, bytes]:
        """Every file of an asset in a zone, with its bytes."""
        files = [path for path in (self.data / name).rglob("*") if path.is_file() and ".uploads" not in path.parts]
        return {str(path.relative_to(self.data / name)): path.read_bytes() for path in files}

    def outside(self) -> dict[str, bytes]:
        """Return the files of the external zone without the manifest."""
        return {name: content for name, content in self.zone("external").items() if not name.endswith("_manifest.json")}

    def ended(self, decided: Any) -> None:
        """Wait for the export or withdrawal that a decision has started."""
        assert self.run("status", decided["export_job_id"], "--wait")["status"] == "completed"


@contextmanager
def installation_in(data: Path, geomill: Geomill, **settings: str) -> Iterator[Installation]:
    with ready(data, **settings) as (process, client):
        show_key(client, data)
        yield Installation(process, data, geomill, client)
