"""The first steps of a newcomer, with the real command on a private database."""

from __future__ import annotations

from pathlib import Path

import pytest

from geomill.embedded import Cluster, State
from tests.acceptance.conftest import Geomill


@pytest.mark.slow
def test_hello_world_from_nothing(geomill: Geomill, data: Path) -> None:
    first = geomill("--data", str(data), "jobs", "submit", "hello_world", "--wait", "--input", "name=Ada")
    assert first.code == 0, first.err
    assert first.json == {"message": "Hello, Ada!"}
    assert "✓ hello completed" in first.err
    assert Cluster(data).status().state is State.STOPPED  # nobody used it any more

    arguments = ("retry_test", "--wait", "-i", "fail_times=9", "--json")
    failed = geomill("--data", str(data), "jobs", "submit", *arguments)
    assert failed.code == 1
    assert failed.json["status"] == "failed"
    assert failed.json["error"].startswith("node 'flaky' failed: ")

    listed = geomill("--data", str(data), "jobs", "list", "--json").json
    assert [job["status"] for job in listed] == ["failed", "completed"]

    shown = geomill("--data", str(data), "jobs", "show", listed[1]["job_id"], "--events").out
    assert "completed   hello" in shown
    assert "job_completed" in shown


@pytest.mark.slow
def test_submit_without_waiting_is_queued_until_somebody_comes(geomill: Geomill, database: str) -> None:
    queued = geomill("jobs", "submit", "hello_world", "--json", GEOMILL_DATABASE_URL=database).json
    assert queued["status"] == "queued"
    shown = geomill("jobs", "show", queued["job_id"], "--json", GEOMILL_DATABASE_URL=database)
    assert shown.json["status"] == "queued"
    other = geomill("jobs", "submit", "hello_world", "--wait", "--json", GEOMILL_DATABASE_URL=database)
    assert other.json["status"] == "completed"
    shown = geomill("jobs", "show", queued["job_id"], "--json", GEOMILL_DATABASE_URL=database)
    assert shown.json["status"] == "completed"


@pytest.mark.slow
def test_what_handlers_said_can_be_read(geomill: Geomill, database: str) -> None:
    job = geomill("jobs", "submit", "report_stuck_assets", "--wait", "--json", GEOMILL_DATABASE_URL=database).json
    logs = geomill("jobs", "logs", job["job_id"], "--node", "look", "--json", GEOMILL_DATABASE_URL=database)
    assert [line["message"] for line in logs.json] == ["0 assets are stuck"]
    assert "0 assets are stuck" in geomill("jobs", "logs", job["job_id"], GEOMILL_DATABASE_URL=database).out


@pytest.mark.slow
def test_a_database_of_others_is_migrated_only_when_told(geomill: Geomill, empty_database: str) -> None:
    refused = geomill("jobs", "list", GEOMILL_DATABASE_URL=empty_database)
    assert refused.code == 1
    assert "'geomill db migrate'" in refused.err
    assert geomill("db", "status", "--json", GEOMILL_DATABASE_URL=empty_database).json["up_to_date"] is False
    done = geomill("db", "migrate", GEOMILL_DATABASE_URL=empty_database)
    assert done.code == 0, done.err
    again = geomill("db", "migrate", "--json", GEOMILL_DATABASE_URL=empty_database)
    assert again.json["done"] == []
    assert "There are no such jobs" in geomill("jobs", "list", GEOMILL_DATABASE_URL=empty_database).out
