"""`geomill up --reload`: changed workflows and handlers are picked up, and no job is lost."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.acceptance.running import client_of, eventually, free_port, is_ready, running, show_key

pytestmark = pytest.mark.slow
WORKFLOW = """
workflow_id: greet
name: Greet
nodes:
  START: {{type: start, next: first}}
  first: {{type: task, handler: greet, params: {{seconds: 1}}, next: second}}
  second: {{type: task, handler: greet, params: {{seconds: 0}}, next: END}}
  END: {{type: end}}
outputs: {{text: "{{{{ nodes.second.output.text }}}}", note: {note}}}
"""
HANDLER = """
import asyncio
from geomill.sdk import HandlerContext, register_handler

@register_handler("greet")
async def greet(ctx: HandlerContext) -> dict:
    await asyncio.sleep(ctx.params["seconds"])
    return {{"text": "{text}"}}
"""


def submit(client: httpx.Client) -> str:
    answer = client.post("/api/v1/jobs", json={"workflow_id": "greet"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


def result(client: httpx.Client, job_id: str) -> dict[str, str] | None:
    """The result of a job that has ended, or None. The gateway may be restarting."""
    try:
        job = client.get(f"/api/v1/jobs/{job_id}").json()
    except httpx.HTTPError:
        return None
    assert job["status"] != "failed", job
    return job["result"] if job["status"] == "completed" else None


def test_changes_are_picked_up_and_no_job_is_lost(prepared_data: Path, tmp_path: Path) -> None:
    workflows, modules = tmp_path / "workflows", tmp_path / "modules"
    workflows.mkdir()
    modules.mkdir()
    workflow, handler, log = workflows / "greet.yaml", modules / "greetings.py", prepared_data.parent / "log"
    workflow.write_text(WORKFLOW.format(note="old"))
    handler.write_text(HANDLER.format(text="good morning"))
    settings = {
        "GEOMILL_WORKFLOWS": str(workflows),
        "GEOMILL_HANDLERS": "greetings",
        "PYTHONPATH": str(modules),
    }
    port = free_port()
    with running(prepared_data, port, "--reload", **settings), client_of(port) as client:
        eventually(lambda: is_ready(client), "ready")
        show_key(client, prepared_data)
        job_id = submit(client)
        handler.write_text(HANDLER.format(text="good evening, everybody"))
        eventually(lambda: "greetings.py changed: reloading" in log.read_text(), "the change is seen")
        finished = eventually(lambda: result(client, job_id), "the job that ran meanwhile ends")
        assert finished["note"] == "old"
        eventually(lambda: is_ready(client), "ready again")
        later = submit(client)
        assert eventually(lambda: result(client, later), "a new job ends")["text"] == "good evening, everybody"

        workflow.write_text(WORKFLOW.format(note="new").replace("handler: greet,", "handler: gret,", 1))
        eventually(lambda: "did you mean 'greet'?" in log.read_text(), "the mistake is named")
        assert result(client, later) is not None  # it goes on
        workflow.write_text(WORKFLOW.format(note="new"))
        eventually(lambda: log.read_text().count("changed: reloading") == 2, "the mended file is seen")
        eventually(lambda: is_ready(client), "ready once more")
        last = submit(client)
        assert eventually(lambda: result(client, last), "the last job ends")["note"] == "new"
