"""A database that is there but wrong: real roles, default settings, and nobody has to restart anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from geomill.domain.ids import new_id
from geomill.domain.jsonvalue import to_json
from tests.chaos.platform import ChaosPlatform

pytestmark = pytest.mark.slow
DEADLINE_SECONDS = 180.0
READ_ONLY = "ALTER SYSTEM SET default_transaction_read_only = on"
WRITABLE = "ALTER SYSTEM RESET default_transaction_read_only"


@pytest.fixture(scope="module")
def platform() -> Iterator[ChaosPlatform]:
    with ChaosPlatform(orchestrators=1, workers=1, gateways=0) as platform:
        _finish(platform, _submit(platform))
        yield platform


def _execute(platform: ChaosPlatform, *statements: str) -> None:
    for statement in statements:
        platform.execute(statement)


def _is_read_only(platform: ChaosPlatform) -> bool:
    with psycopg.connect(platform.url, autocommit=True) as conn:
        return conn.execute("SHOW default_transaction_read_only").fetchone() == ("on",)


def _submit(platform: ChaosPlatform, **inputs: Any) -> str:
    """Submit as an application of the library does: the message is the job."""
    job_id = new_id()
    body = to_json({"job_id": job_id, "workflow_id": "weather", "input_params": inputs})
    with psycopg.connect(platform.url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body) VALUES ('dag-jobs', %s, %s)", (job_id, body)
        )
        conn.execute("SELECT pg_notify('q:dag-jobs', '')")
    return job_id


def _wait(what: str, platform: ChaosPlatform, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except psycopg.OperationalError:
            pass  # the server is away
        time.sleep(0.1)
    pytest.fail(f"{what}: not within {DEADLINE_SECONDS:g} s\n{platform.log_tail()}")


def _finish(platform: ChaosPlatform, job_id: str) -> None:
    def ended() -> bool:
        rows = platform.rows(f"SELECT status::text FROM dagapp.dag_jobs WHERE job_id = '{job_id}'")
        return bool(rows) and rows[0][0] == "completed"

    _wait("the job completes", platform, ended)


def _running(platform: ChaosPlatform, count: int) -> None:
    query = "SELECT count(*) FROM dagapp.dag_queue WHERE lease_token IS NOT NULL"
    _wait(f"{count} tasks run", platform, lambda: platform.rows(query)[0][0] == count)


def _attempts(platform: ChaosPlatform, job_id: str) -> list[tuple[object, ...]]:
    return platform.rows(
        "SELECT max(r.attempt), count(*) FROM dagapp.dag_task_results AS r"
        f" WHERE r.job_id = '{job_id}' AND r.status = 'completed'"
    )


@contextmanager
def _read_only(platform: ChaosPlatform) -> Iterator[None]:
    _execute(platform, READ_ONLY, "SELECT pg_reload_conf()")
    try:
        _wait("it is read-only", platform, lambda: _is_read_only(platform))
        yield
    finally:
        _execute(platform, WRITABLE, "SELECT pg_reload_conf()")


def _pids(platform: ChaosPlatform) -> list[int]:
    assert all(process.poll() is None for processes in platform.processes.values() for process in processes)
    return [process.pid for processes in platform.processes.values() for process in processes]


def _complaints(platform: ChaosPlatform, text: str) -> int:
    return platform.log_tail(10_000).count(text)


def test_roles_that_start_while_the_database_is_read_only_begin_when_it_is_not(platform: ChaosPlatform) -> None:
    processes = [process for processes in platform.processes.values() for process in processes]
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()
    lost = "the listening session is lost"
    before = _complaints(platform, lost)
    with _read_only(platform):
        for role, processes in platform.processes.items():
            for process in list(processes):
                platform.replace(role, process)
        _wait("they say so", platform, lambda: _complaints(platform, lost) >= before + 4)
        pids = _pids(platform)
    _finish(platform, _submit(platform))
    assert _pids(platform) == pids


def test_read_only_for_a_while_ends_no_process_and_loses_no_result(platform: ChaosPlatform) -> None:
    pids = _pids(platform)
    job_id = _submit(platform, size=2, seconds=1.5)
    _running(platform, 2)
    with _read_only(platform):
        before = _complaints(platform, "read-only transaction")
        _wait("results wait", platform, lambda: _complaints(platform, "read-only transaction") >= before + 4)
    _finish(platform, job_id)
    assert _pids(platform) == pids
    assert _attempts(platform, job_id) == [(1, 2)]
    assert platform.rows(f"SELECT error_message FROM dagapp.dag_jobs WHERE job_id = '{job_id}'") == [(None,)]


def test_sessions_that_began_while_the_database_was_read_only_do_not_stay_so(platform: ChaosPlatform) -> None:
    """A setting of a database holds for sessions that begin after it was set."""
    name = str(platform.rows("SELECT current_database()")[0][0])
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'geomill%'"
    pids = _pids(platform)
    _execute(platform, f"ALTER DATABASE {name} SET default_transaction_read_only = on", end_all)
    before = _complaints(platform, "read-only transaction")
    _wait("they notice", platform, lambda: _complaints(platform, "read-only transaction") > before)
    _execute(platform, f"ALTER DATABASE {name} RESET default_transaction_read_only")
    _finish(platform, _submit(platform))
    assert _pids(platform) == pids


def test_roles_that_start_while_the_database_is_away_begin_when_it_is_back(platform: ChaosPlatform) -> None:
    waits = "the database is not ready"
    platform.stop_postgres("fast")
    try:
        for role, processes in platform.processes.items():
            for process in list(processes):
                process.kill()
                process.wait()
                platform.replace(role, process)
        _wait("they wait", platform, lambda: _complaints(platform, waits) >= 4)
    finally:
        platform.start_postgres()
    pids = _pids(platform)
    _finish(platform, _submit(platform))
    assert _pids(platform) == pids


def test_after_an_outage_everybody_is_back_without_a_restart(platform: ChaosPlatform) -> None:
    pids = _pids(platform)
    platform.stop_postgres("immediate")
    time.sleep(6)
    platform.start_postgres()
    _finish(platform, _submit(platform))
    assert _pids(platform) == pids
