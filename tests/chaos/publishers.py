"""A publisher whose assets live beside the jobs: submitted, approved, overwritten, approved again and revoked, through
the gateways. Every step is repeated until its effect is there; none may happen twice."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.platform import ChaosPlatform
from tests.chaos.users import AGAIN_SECONDS, NO_ANSWER
from tests.chaos.visitors import revoked_outside

TIFF = b"II*\0" + bytes(range(256)) * 8
CONTAINER = "uploads"
FAILED = "failed"


class StoppedError(Exception):
    """The run ended before the life of the asset did."""


@dataclass
class Life:
    """The history of one asset, and the state that it must therefore have."""

    name: str
    asset_id: str = ""
    content: bytes = b""
    revision: int = 0
    approval: str = "pending_review"
    decisions: list[str] = field(default_factory=list)
    whole: bool = False
    """Every step was done and seen."""
    refusal: str = ""
    """An answer that no fault explains."""


@dataclass
class Publisher:
    platform: ChaosPlatform
    names: str = "chaos"
    """How its assets' names begin."""
    lives: list[Life] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    retried: int = 0
    """Requests whose job failed in bad weather, and were run again by hand."""
    stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> bool:
        """Let the asset at hand come to its end, if it does in so many seconds."""
        self._last = True
        self._thread.join(seconds)
        self.stop.set()
        self._thread.join()
        return all(life.whole for life in self.lives)

    def __post_init__(self) -> None:
        self._last = False
        self._clients = itertools.cycle([self.platform.client(number) for number in range(self.platform.gateways)])

    def submit(self, life: Life, revision: int, *, wait: bool = True) -> str:
        """Submit a revision. Return the id of the request."""
        life.content = TIFF + f"{life.name} {revision}".encode()
        folder = self.platform.zones / "bronze" / CONTAINER
        folder.mkdir(parents=True, exist_ok=True)
        file = f"{life.name}-{revision}.tif"
        (folder / file).write_bytes(life.content)
        body = {
            "dataset_id": life.name, "resource_id": "r", "version_id": "v", "data_type": "raster",
            "workflow_id": "publish_file", "container_name": CONTAINER, "file_name": file,
            "overwrite": revision > 1, "idempotency_key": f"{life.name}-{revision}",
        }  # fmt: skip
        accepted = self._ask("POST", "/api/platform/submit", body)
        life.asset_id, life.revision = accepted["asset_id"], revision
        life.approval = "pending_review"
        life.decisions.append("submitted" if revision == 1 else "overwritten")
        if wait:
            self._processed(accepted["request_id"])
        return str(accepted["request_id"])

    def _work(self) -> None:
        while not self._last and not self.stop.is_set():
            life = Life(f"{self.names}{len(self.lives)}")
            self.lives.append(life)
            try:
                self._live(life, "public" if len(self.lives) % 2 else "ouo")
            except StoppedError:
                return
            except AssertionError as error:
                life.refusal = str(error)

    def _live(self, life: Life, clearance: str) -> None:
        for revision in (1, 2):
            self.submit(life, revision)
            self._decide(life, "approve", "approved", "approved", clearance_level=clearance)
            if clearance == "public" and self.platform.servers:
                self._exported(life)
        self._decide(life, "revoke", "rejected", "revoked", reason="over")
        life.whole = True

    def _processed(self, request_id: str) -> None:
        while True:
            standing = self._ask("GET", f"/api/platform/status/{request_id}")
            if standing["processing_status"] == "completed":
                return
            if standing["processing_status"] == FAILED:
                self.retried += 1
                self._ask("POST", "/api/platform/retry", {"request_id": request_id}, refused=True)
            self._pause()

    def _exported(self, life: Life) -> None:
        """Wait until the external zone has the revision."""
        while self._ask("GET", f"/api/assets/{life.asset_id}")["external_revision"] != life.revision:
            self._pause()

    def _decide(self, life: Life, action: str, state: str, decision: str, **options: str) -> None:
        """Send the decision until the asset shows it. After a lost answer, the second one may be refused because the
        first took effect."""
        body = {"asset_id": life.asset_id, "expected_revision": life.revision, **options}
        while True:
            self._ask("POST", f"/api/platform/{action}", body, refused=True)
            if self._ask("GET", f"/api/assets/{life.asset_id}")["approval_state"] == state:
                break
            self._pause()
        life.approval = state
        life.decisions.append(decision)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None, *, refused: bool = False) -> Any:
        """Send the request until an answer is conclusive. With `refused`, a conflict is conclusive, too."""
        while True:
            try:
                answer = next(self._clients).request(method, path, json=body)
            except httpx.HTTPError:
                self.answers[NO_ANSWER] += 1
            else:
                self.answers[str(answer.status_code)] += 1
                if answer.is_success or (refused and answer.status_code == 409):
                    return answer.json()
                if answer.status_code < 500 and answer.status_code != 429:
                    raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
            self._pause()

    def _pause(self) -> None:
        if self.stop.wait(AGAIN_SECONDS):
            raise StoppedError


def wrong_lives(platform: ChaosPlatform, publisher: Publisher) -> list[str]:
    """Return the assets whose state, decisions or files differ from what was done with them."""
    wrong = []
    for life in [life for life in publisher.lives if life.whole]:
        states = platform.rows(
            "SELECT revision, approval_state::text, blob_path FROM app.geospatial_assets"
            f" WHERE asset_id = '{life.asset_id}'"
        )
        decisions = platform.rows(
            f"SELECT decision::text FROM app.asset_audit WHERE asset_id = '{life.asset_id}' ORDER BY audit_id"
        )
        if [row[:2] for row in states] != [(life.revision, life.approval)]:
            wrong.append(f"{life.name} is {states}, not {(life.revision, life.approval)}")
        if [row[0] for row in decisions if row[0] != "retried"] != life.decisions:
            wrong.append(f"{life.name} has the decisions {decisions}, not {life.decisions}")
        files = [platform.zones / "silver" / str(row[2]).removeprefix("silver/") for row in states]
        if [file.read_bytes() if file.is_file() else None for file in files] != [life.content]:
            wrong.append(f"{life.name} has another file than was submitted, or none: {files}")
    if platform.external_url:
        wrong += revoked_outside(platform.external_url, [life.asset_id for life in publisher.lives if life.whole])
    wrong += [f"{life.name} did not come to its end {life.refusal}" for life in publisher.lives if not life.whole]
    return wrong


def wait_for_first(publisher: Publisher, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not any(life.asset_id for life in publisher.lives) and time.monotonic() < deadline:
        time.sleep(0.05)
