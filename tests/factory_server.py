"""A local server that speaks the REST protocol of Data Factory, and really copies files.

The shapes of requests and answers are those that Microsoft's reference documents for version 2018-06-01. It knows one
pipeline, which copies the files of its parameter between two folders.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import jwt

from geomill.domain.assets.factory import FactoryPlace

FACTORY = (
    "/subscriptions/00000000-0000-0000-0000-000000000003/resourceGroups/rg-geo"
    "/providers/Microsoft.DataFactory/factories/adf-geo"
)
PIPELINE = "geomill-export"
AUDIENCE = "https://management.azure.com"
PAGE = 2


@dataclass
class FactoryRun:
    run_id: str
    parameters: dict[str, Any]
    status: str = "Queued"
    message: str = ""
    begun_at: str = ""
    shown_from: float = 0.0
    cancelled: threading.Event = field(default_factory=threading.Event)

    def described(self) -> dict[str, Any]:
        return {
            "id": f"{FACTORY}/pipelineruns/{self.run_id}",
            "runId": self.run_id,
            "runGroupId": self.run_id,
            "isLatest": True,
            "pipelineName": PIPELINE,
            "parameters": {name: _text(value) for name, value in self.parameters.items()},
            "invokedBy": {"id": "an-id", "name": "Manual", "invokedByType": "Manual"},
            "runStart": self.begun_at,
            "lastUpdated": self.begun_at,
            "status": self.status,
            "message": self.message,
        }


def _text(value: Any) -> str:
    """Runs show every parameter as text."""
    return value if isinstance(value, str) else json.dumps(value)


@dataclass
class FactoryServer:
    silver: Path
    external: Path
    url: str = ""
    runs: list[FactoryRun] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    """Runs copy when it is set."""
    lag: float = 0.0
    """Seconds for which a new run is missing from the list."""
    fail: list[str] = field(default_factory=list)
    """Messages with which the next runs fail."""
    lose_answers: int = 0
    """How many runs are started without an answer."""
    refuse: list[int] = field(default_factory=list)
    """Statuses of the next answers, whatever is asked."""
    damage: bool = False
    leave_out: bool = False
    slow_cancel: float = 0.0

    @property
    def place(self) -> FactoryPlace:
        return FactoryPlace(factory=FACTORY, pipeline=PIPELINE, url=self.url)

    def statuses(self) -> list[str]:
        return [run.status for run in self.runs]

    def start(self, parameters: dict[str, Any]) -> FactoryRun:
        run = FactoryRun(uuid4().hex, parameters, begun_at=datetime.now(UTC).isoformat())
        run.shown_from = time.monotonic() + self.lag
        self.runs.append(run)
        threading.Thread(target=self._work, args=(run,), daemon=True).start()
        return run

    def _work(self, run: FactoryRun) -> None:
        run.status = "InProgress"
        while not self.gate.wait(0.02):
            if run.cancelled.is_set():
                time.sleep(self.slow_cancel)
                run.status = "Cancelled"
                return
        if self.fail:
            run.message, run.status = self.fail.pop(0), "Failed"
            return
        for copy in run.parameters["files"]:
            self._copy(copy)
        run.status = "Succeeded"

    def _copy(self, copy: dict[str, str]) -> None:
        source = self.silver / copy["sourceContainer"] / copy["sourcePath"]
        target = self.external / copy["targetContainer"] / copy["targetPath"]
        if self.leave_out:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if self.damage:
            content = bytearray(target.read_bytes())
            content[-1] ^= 1
            target.write_bytes(content)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        self.calls.append(f"{method} {path.removeprefix(FACTORY)}")
        if query.get("api-version") != "2018-06-01" or not path.startswith(FACTORY):
            return 404, {"error": {"code": "NotFound", "message": "no such resource"}}
        if self.refuse:
            return self.refuse.pop(0), {"error": {"code": "Refused", "message": "not now"}}
        match method, path.removeprefix(FACTORY).strip("/").split("/"):
            case "POST", ["pipelines", name, "createRun"] if name == PIPELINE:
                run = self.start(body)
                return 200, {"runId": run.run_id}
            case "POST", ["queryPipelineRuns"]:
                return 200, self._listed(body)
            case "GET", ["pipelineruns", run_id] if run := self._run_of(run_id):
                return 200, run.described()
            case "POST", ["pipelineruns", run_id, "cancel"] if run := self._run_of(run_id):
                return self._cancel(run, query)
        return 404, {"error": {"code": "PipelineNotFound", "message": "no such thing"}}

    def _run_of(self, run_id: str) -> FactoryRun | None:
        return next((run for run in self.runs if run.run_id == run_id), None)

    def _cancel(self, run: FactoryRun, query: dict[str, str]) -> tuple[int, Any]:
        if query.get("isRecursive") != "true" or run.status in ("Succeeded", "Failed", "Cancelled"):
            return 400, {"error": {"code": "BadRequest", "message": "the run has ended"}}
        run.status = "Canceling"
        run.cancelled.set()
        return 200, None

    def _listed(self, body: dict[str, Any]) -> dict[str, Any]:
        (condition,) = body["filters"]
        assert condition == {"operand": "PipelineName", "operator": "Equals", "values": [PIPELINE]}
        assert datetime.fromisoformat(body["lastUpdatedAfter"]) < datetime.fromisoformat(body["lastUpdatedBefore"])
        shown = [run for run in reversed(self.runs) if run.shown_from <= time.monotonic()]
        first = int(body.get("continuationToken") or 0)
        page = {"value": [run.described() for run in shown[first : first + PAGE]]}
        return {**page, "continuationToken": str(first + PAGE)} if first + PAGE < len(shown) else page


@contextmanager
def factory_server(silver: Path, external: Path) -> Iterator[FactoryServer]:
    factory = FactoryServer(silver, external)
    factory.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond("GET")

        def do_POST(self) -> None:
            self._respond("POST")

        def _respond(self, method: str) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if not self._authorized():
                self._send(401, {"error": {"code": "AuthenticationFailed", "message": "no valid token"}})
                return
            status, content = factory.answer(method, parts.path, query, body)
            if parts.path.endswith("/createRun") and status == 200 and factory.lose_answers:
                factory.lose_answers -= 1
                self.connection.close()
                return
            self._send(status, content)

        def _authorized(self) -> bool:
            scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
            return scheme == "Bearer" and jwt.decode(token, options={"verify_signature": False})["aud"] == AUDIENCE

        def _send(self, status: int, content: Any) -> None:
            data = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    factory.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield factory
    finally:
        factory.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
