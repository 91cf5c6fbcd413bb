"""A client that a public generator makes from our OpenAPI document works."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.integration.client.conftest import RunningGateway
from tests.integration.client.test_client import REFS

pytestmark = pytest.mark.slow
NAME = "generated_geomill_client"


@pytest.fixture
async def generated(gateway: RunningGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    async with httpx.AsyncClient() as http:
        document = (await http.get(f"{gateway.url}/openapi.json")).raise_for_status().json()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "config.yaml").write_text("post_hooks: []\n")
    command = [Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none"]
    files = ["--path", "openapi.json", "--config", "config.yaml", "--output-path", NAME]
    made = await asyncio.to_thread(
        subprocess.run, [*command, *files], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "WARNING" not in made.stdout + made.stderr, made.stdout + made.stderr
    monkeypatch.syspath_prepend(tmp_path)
    parts = {name: importlib.import_module(f"{NAME}.{name}") for name in ("client", "models")}
    yield SimpleNamespace(**parts, operation=lambda name: importlib.import_module(f"{NAME}.api.{name}"))
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


async def test_submit_repeat_rehearse_read_and_fail(generated: SimpleNamespace, gateway: RunningGateway) -> None:
    async with generated.client.AuthenticatedClient(base_url=gateway.url, token=gateway.key) as client:
        await _use(generated, client)


async def _use(generated: SimpleNamespace, client: Any) -> None:
    body = generated.models.PlatformSubmission.from_dict(
        {
            "platform_refs": REFS,
            "data_type": "raster",
            "container_name": "uploads",
            "file_name": "a.tif",
            "workflow_id": "publish_file",
            "idempotency_key": "once",
        }
    )

    async def call(name: str, **arguments: Any) -> Any:
        return await generated.operation(name).asyncio_detailed(client=client, **arguments)

    rehearsal = await call("platform.submit_data", body=body, dry_run=True)
    assert (rehearsal.status_code, rehearsal.parsed.dry_run) == (200, True)
    accepted = await call("platform.submit_data", body=body)
    assert (accepted.status_code, accepted.parsed.operation) == (202, "created")
    repeated = await call("platform.submit_data", body=body)
    assert (repeated.status_code, repeated.parsed.operation) == (200, "repeated")
    assert repeated.parsed.request_id == accepted.parsed.request_id
    status = await call("platform.get_status", identifier=accepted.parsed.request_id)
    assert status.parsed.asset_id == accepted.parsed.asset_id
    absent = await call("platform.get_status", identifier="absent")
    assert (absent.status_code, absent.parsed.code) == (404, "not_found")
    wrong = generated.models.JobSubmission.from_dict({"workflow_id": "hello_world", "input_params": {"nam": "Ada"}})
    refused = await call("jobs.submit_job", body=wrong)
    assert (refused.status_code, refused.parsed.errors[0].field) == (422, "nam")
