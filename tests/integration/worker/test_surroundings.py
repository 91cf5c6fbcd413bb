"""A task process finds nothing that it does not need."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from geomill.storage import Storage, StorageRecipe
from geomill.worker.children.surroundings import Wishes
from tests.integration.listener import CallRecorder
from tests.integration.worker.conftest import TaskBench

SECRETS = {
    "GEOMILL_DATABASE_URL": "postgresql://engine:secret-a@host/db",
    "GEOMILL_EXTERNAL_DATABASE_URL": "postgresql://engine:secret-b@host/db",
    "GEOMILL_CALLBACK_SECRET": "secret-c-secret-c-secret",
    "GEOMILL_LINK_SECRET": "secret-d",
    "GEOMILL_KEY": "secret-e",
    "PGPASSWORD": "secret-f",
    "AZURE_STORAGE_KEY": "secret-g",
    "AWS_SECRET_ACCESS_KEY": "secret-h",
    "SOMEBODYS_TOKEN": "secret-i",
    "http_proxy": "http://user:secret-j@proxy",
}


async def run(bench: TaskBench, handler: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    job = await bench.try_out(handler, params)
    assert job.result_data is not None, job.error_message
    output: dict[str, Any] = job.result_data["work"]
    return output


@pytest.mark.skipif(sys.platform != "linux", reason="a network namespace is Linux's")
async def test_a_task_calls_nobody_and_has_its_database(bench: TaskBench) -> None:
    if "host=%2F" not in bench.url:
        pytest.skip("the database is reached by the network")
    with CallRecorder() as listener:
        bench.worker(processes=1)
        output = await run(bench, "call", {"port": listener.port})
        assert listener.calls == []
    assert "unreachable" in output["ended"]
    assert (output["answer"], output["uid"]) == (1, os.getuid())


async def test_the_operator_may_open_the_network(bench: TaskBench) -> None:
    with CallRecorder() as listener:
        bench.worker(processes=1, wishes=Wishes(network=True))
        output = await run(bench, "call", {"port": listener.port})
    assert output["ended"] == "connected"


async def test_the_environment_holds_no_secret(bench: TaskBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MY_HANDLERS_PLACE", "here")
    bench.worker(processes=1, wishes=Wishes(variables=("MY_HANDLERS_PLACE",)))
    environ = (await run(bench, "look_around"))["environ"]
    assert [name for name, value in environ.items() if "secret" in value] == []
    assert environ["MY_HANDLERS_PLACE"] == "here"
    assert environ["PATH"] == os.environ["PATH"]


async def test_files_are_for_this_user_alone_and_nothing_is_imported_from_here(
    bench: TaskBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder has a module with the name of one of Python's own."""
    (tmp_path / "json.py").write_text("raise SystemExit('from here')", encoding="ascii")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(tmp_path)
    bench.storage = Storage(StorageRecipe.in_folder(tmp_path / "data"))
    bench.worker(processes=1)
    output = await run(bench, "look_around")
    assert output["modes"] == [0o700, 0o600]
    assert Path(output["place"]) == tmp_path / "data" / "scratch"
    assert "" not in output["path"]
    assert output["cwd"] not in output["path"]
