"""The commands of operators, without a server and with one: the same answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from geomill.api import create_app
from geomill.cli import context, folder
from geomill.cli.gateway import listen
from geomill.cli.main import app
from geomill.domain.access.principal import Role
from geomill.settings import AccessSettings, QueueSettings
from tests.integration.api.conftest import make_key
from tests.integration.cli.test_client import serving
from tests.integration.engine.conftest import make_platform as make_platform
from tests.integration.engine.platform import EnginePlatform

BROKEN = """
workflow_id: broken
name: Broken
inputs: {reason: {type: string, default: "no luck"}}
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: "{{ [1, 2, 3] }}"
    task: {handler: fail, params: {error_message: "{{ inputs.reason }}", retryable: false}}
    next: END
  END: {type: end}
"""


class Shell:
    """Runs commands: `await shell("jobs", "list")`."""

    def __init__(self, data: Path) -> None:
        self._data = data

    async def __call__(self, *words: str, code: int = 0) -> str:
        done = await asyncio.to_thread(CliRunner().invoke, app, ["--data", str(self._data), *words])
        if done.exception and not isinstance(done.exception, SystemExit):
            if code:
                return str(done.exception)
            raise done.exception
        assert done.exit_code == code, done.output
        return done.output

    async def json(self, *words: str) -> Any:
        return json.loads(await self(*words, "--json"))


@pytest.fixture(params=["database", "gateway"])
async def shell(
    request: pytest.FixtureRequest,
    make_platform: Callable[..., EnginePlatform],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Shell]:
    """A shell on a machine with an orchestrator and a worker: with a gateway, or with the database alone."""
    workflows = tmp_path / "workflows"
    workflows.mkdir()
    (workflows / "broken.yaml").write_text(BROKEN)
    monkeypatch.setenv("GEOMILL_WORKFLOWS", str(workflows))
    platform = make_platform()
    platform.workflow_registry = context.workflow_registry(platform.registry)
    platform.orchestrator()
    platform.worker()
    async with AsyncExitStack() as stack:
        if request.param == "gateway":
            settings = (QueueSettings(), AccessSettings())
            gateway = create_app(
                database,
                platform.workflow_registry,
                *settings,
                handlers=platform.registry,
                job_types=context.stage_jobs(),
            )
            folder.write_key(tmp_path, await make_key(database, Role.ADMIN, name="root"))
            listener = stack.enter_context(listen("127.0.0.1", 0))
            address = await stack.enter_async_context(serving(gateway, listener))
            stack.enter_context(folder.published_address(tmp_path, address))
        else:
            monkeypatch.setenv("GEOMILL_DATABASE_URL", database)
        yield Shell(tmp_path)


async def run(shell: Shell, platform_job: str) -> dict[str, Any]:
    """Wait until a job has ended."""
    async with asyncio.timeout(30):
        while (job := await shell.json("jobs", "show", platform_job))["status"] not in ("completed", "failed"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return dict(job)


@pytest.mark.slow
async def test_schedules_and_their_jobs(shell: Shell) -> None:
    created = await shell("schedules", "create", "nightly", "hello_world", "--cron", "0 3 * * *", "-i", "name=Ada")
    assert created.startswith("nightly: next ")
    assert "--cron" not in await shell("schedules", "change", "nightly", "--every", "3600")
    (listed,) = await shell.json("schedules", "list")
    assert (listed["interval_seconds"], listed["cron"], listed["input_params"]) == (3600, None, {"name": "Ada"})
    assert await shell("schedules", "pause", "nightly") == "nightly: paused\n"
    job_id = (await shell("schedules", "fire", "nightly")).split()[1]
    job = await run(shell, job_id)
    assert job["result"] == {"message": "Hello, Ada!"}
    assert job_id in await shell("schedules", "show", "nightly")
    assert "has no input 'nam'" in await shell("schedules", "create", "x", "hello_world", "-i", "nam=1", code=2)
    assert "nothing to change" in await shell("schedules", "change", "nightly", code=2)
    assert await shell("schedules", "delete", "nightly") == "deleted nightly\n"
    assert "there is no schedule" in await shell("schedules", "show", "nightly", code=2)


@pytest.mark.slow
async def test_a_job_that_fails_is_looked_into_and_repeated(shell: Shell) -> None:
    job_id = await _submit(shell, "broken")
    job = await run(shell, job_id)
    assert job["status"] == "failed"
    assert job_id in await shell("jobs", "list", "--status", "failed", "--error", "no luck")
    assert "There are no such jobs" in await shell("jobs", "list", "--status", "queued")
    assert (await shell.json("jobs", "counts"))["counts"]["failed"] == 1
    summary = await shell("jobs", "items", job_id, "each")
    assert summary.startswith("3 items: ")
    assert "no luck" in summary
    item = await shell.json("jobs", "node", job_id, "each", "--item", "0")
    assert item["attempts"][0]["error"] == "no luck"
    again = await shell.json("jobs", "retry", job_id, "--input", "reason=bad weather")
    assert (await run(shell, again["job_id"]))["retry_of"] == job_id
    difference = await shell("jobs", "diff", job_id, again["job_id"])
    assert "bad weather" in difference
    assert "exclude each other" in await shell("jobs", "retry", job_id, "--only-failed", "--from", "each", code=2)
    assert "requested: retry" in await shell("jobs", "retry", job_id, "--from", "each")
    assert (await run(shell, job_id))["status"] == "failed"
    assert "illegal" not in await shell("jobs", "logs", job_id, "--node", "each")


async def _submit(shell: Shell, workflow_id: str) -> str:
    """Start a job by a schedule, because `jobs submit` runs its own roles."""
    await shell("schedules", "create", "once", workflow_id, "--every", "86400", "--paused")
    return (await shell("schedules", "fire", "once")).split()[1]


async def test_jobs_and_stage_jobs_are_submitted_and_watched(shell: Shell) -> None:
    job = await shell.json("jobs", "submit", "hello_world", "--input", "name=Ada", "--wait")
    assert (job["status"], job["result"]) == ("completed", {"message": "Hello, Ada!"})
    assert json.loads(await shell("jobs", "watch", job["job_id"], "--json")) == job
    failed = json.loads(await shell("jobs", "submit", "broken", "--wait", "--json", code=1))
    assert "no luck" in failed["error"]
    accepted = await shell.json("jobs", "submit", "hello_world", "--idempotency-key", "once")
    assert (await shell.json("jobs", "submit", "hello_world", "--idempotency-key", "once"))["job_id"] == accepted[
        "job_id"
    ]
    assert "did you mean 'hello_world'?" in await shell("jobs", "submit", "helo_world", code=2)
    assert "there is no job" in await shell("jobs", "watch", "absent", code=2)
    staged = await shell.json("stages", "submit", "hello_world", "--param", "name=Ada", "--wait")
    assert staged["status"] == "completed"
    (listed,) = await shell.json("stages", "list")
    assert listed["parameters"]["name"] == "Ada"
    assert "hello_world  completed" in (await shell("stages", "status", listed["job_id"])).lower()
    assert "hello_world" in await shell("stages", "types")
    assert "there is no job type" in await shell("stages", "submit", "helo", code=2)


async def test_keys_are_made_found_and_revoked(shell: Shell) -> None:
    made = await shell.json("keys", "create", "--role", "reader", "--name", "nightly", "--may-name", "forbidden")
    assert made["key"].startswith("gm_")
    listed = {key["name"]: key for key in await shell.json("keys", "list")}
    assert (listed["nightly"]["may_name"], listed["nightly"]["roles"]) == ("forbidden", ["reader"])
    assert made["key"].split("_")[2] not in str(listed)
    assert "did you mean 'nightly'?" in await shell("keys", "revoke", "nightli", code=2)
    assert await shell("keys", "revoke", "nightly") == f"revoked {made['key_id']} (nightly)\n"
    assert "key_created" in await shell("audit")


async def test_queues_processes_handlers_and_settings(shell: Shell) -> None:
    queues = {queue["queue_name"]: queue for queue in await shell.json("queues", "list")}
    assert queues["dag-jobs"]["consumers"] == 1
    assert await shell.json("queues", "peek", "dag-jobs") == []
    assert "did you mean 'dag-jobs'" in await shell("queues", "peek", "dag-job", code=2)
    assert "exactly one of" in await shell("queues", "redrive", "dag-jobs", code=2)
    assert "0 dead letters sent again" in await shell("queues", "redrive", "dag-jobs", "--all")
    assert "0 dead letters" in await shell("queues", "discard", "dag-jobs", "--all", "--reason", "a test")
    assert await shell.json("queues", "dead-letters") == []
    assert {process["role"] for process in await shell.json("instances")} == {"orchestrator", "worker"}
    assert "hello_world" in await shell("handlers", "list")
    assert "parameter name: string" in await shell("handlers", "show", "hello_world")
    assert await shell("circuits", "list") == "No handler is held back.\n"
    assert await shell("callbacks", "list") == "There are no callbacks.\n"
    assert "workflow_id: broken" in await shell("workflows", "source", "broken")
    assert "No job has used it yet" in await shell("workflows", "versions", "broken")
    assert await shell("storage", "usage")
