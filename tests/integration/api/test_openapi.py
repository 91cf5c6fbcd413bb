"""The OpenAPI document is true: whatever schemathesis makes of it, the answers are among those that it promises."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from geomill.api import create_app
from geomill.domain.access.principal import Role
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.objectname import ObjectName, Zone
from geomill.sdk.registry import load_handlers
from geomill.settings import AccessSettings, QueueSettings, Settings, gateway_settings
from geomill.stages.registry import load_stage_jobs
from geomill.storage import Storage, StorageRecipe
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.conftest import bearing, make_key
from tests.integration.api.desk import TIFF, order

# The gateway runs in a thread of this process, and some of its libraries use `random` while Hypothesis draws.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SEED = 20_26
ENDLESS = {
    "/api/v1/jobs/{job_id}/stream",
    "/api/v1/jobs/{job_id}/logs/stream",
    "/api/v1/jobs/stream",
    "/api/assets/review/stream",
    "/api/v1/instances/stream",
    "/api/v1/stream",
}
MAY_BE_UNWELL = {"/health/ready"}
"""A 503 of these is their answer."""


@dataclass(frozen=True)
class GatewayThread:
    """A gateway in a thread of its own, on a real socket, with an asset in its database."""

    url: str
    document: dict[str, Any]
    headers: dict[str, str]
    path_values: dict[str, str]
    """Parameters of paths that lead somewhere."""


@pytest.fixture
def served(database: str, tmp_path: Path) -> Iterator[GatewayThread]:
    storage = Storage(StorageRecipe.in_folder(tmp_path))
    storage.sync.prepare()
    storage.sync.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF)
    registry, job_types = load_handlers(), load_stage_jobs()
    handlers = registry.info
    files = WorkflowRegistry.load([], handlers=handlers, queues=TASK_QUEUES)
    workflow_registry = job_types.join(files, handlers=handlers, queues=TASK_QUEUES)
    app = create_app(
        database,
        workflow_registry,
        QueueSettings(),
        AccessSettings(),
        storage=storage,
        job_types=job_types,
        handlers=registry,
        settings=gateway_settings(Settings({})),
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        headers = bearing(asyncio.run(make_key(database, Role.ADMIN)))
        with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
            accepted = client.post("/api/platform/submit", json=order()).raise_for_status().json()
            staged = client.post("/api/jobs/submit/hello_world").raise_for_status().json()
            schedule = {"schedule_id": "nightly", "workflow_id": "hello_world", "cron": "30 2 * * *"}
            client.post("/api/v1/schedules", json=schedule).raise_for_status()
            document = client.get("/openapi.json").json()
        path_values = {
            "identifier": accepted["request_id"],
            "asset_id": accepted["asset_id"],
            "job_id": staged["job_id"],  # known to both kinds of jobs
            "job_type": "hello_world",
            "platform_id": "ddh",
            "workflow_id": "publish_file",
            "schedule_id": "nightly",
            "queue": "dag-jobs",
            "message_id": accepted["job_id"],
            "name": "echo",
        }
        yield GatewayThread(url, document, headers, path_values)
    finally:
        server.should_exit = True
        thread.join()


def operations(served: GatewayThread) -> Iterator[Any]:
    for result in schemathesis.openapi.from_dict(served.document).get_all_operations():
        operation = result.ok()
        if operation.path not in ENDLESS:
            yield operation


def for_each_case(strategy: Any, examples: int, check: Callable[[Any], None]) -> list[str]:
    """Check the cases of a strategy. Return the failures that schemathesis reports."""

    @seed(SEED)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def run(case: Any) -> None:
        check(case)

    try:
        run()
    except FailureGroup as found:
        return [str(found)]
    except Unsatisfiable:  # nothing can be wrong about a route that takes nothing
        return []
    return []


def checks(case: Any) -> list[Any]:
    return [check for check in CHECKS if check is not not_a_server_error or case.operation.path not in MAY_BE_UNWELL]


def places(operation: Any, path_values: dict[str, str]) -> dict[str, str] | None:
    names = [parameter.name for parameter in operation.path_parameters]
    return {name: path_values[name] for name in names} if names and all(name in path_values for name in names) else None


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_an_administrator_gets_what_is_promised(served: GatewayThread, mode: GenerationMode) -> None:
    cases = 0

    def check(case: Any) -> None:
        nonlocal cases
        cases += 1
        case.call_and_validate(base_url=served.url, headers=served.headers, checks=checks(case))

    wrong = []
    for operation in operations(served):
        wrong += for_each_case(operation.as_strategy(generation_mode=mode), 3, check)
        if mode is GenerationMode.POSITIVE and (path_parameters := places(operation, served.path_values)):
            wrong += for_each_case(
                operation.as_strategy(generation_mode=mode, path_parameters=path_parameters), 3, check
            )
    assert "\n".join(wrong) == ""
    assert cases > 60


def test_a_stranger_gets_nothing(served: GatewayThread) -> None:
    def check(case: Any) -> None:
        answer = case.call(base_url=served.url)
        case.validate_response(answer, checks=checks(case))
        assert answer.status_code == 401 or not case.operation.definition.raw["security"]

    wrong = [
        failure for operation in operations(served) for failure in for_each_case(operation.as_strategy(), 1, check)
    ]
    assert "\n".join(wrong) == ""
