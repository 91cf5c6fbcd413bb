"""`geomill doctor` on a sound machine and on broken ones; `geomill jobs` steering."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.acceptance.conftest import Geomill
from tests.servicebus.running import running_peer


def levels(findings: list[dict[str, str]]) -> dict[str, str]:
    return {finding["subject"]: finding["level"] for finding in findings}


def test_a_sound_machine_without_anything_running(geomill: Geomill, database: str) -> None:
    ended = geomill("doctor", "--json", GEOMILL_DATABASE_URL=database)
    assert ended.code == 0, ended.out
    level_of = levels(ended.json)
    assert level_of | {"database": "ok", "schema": "ok", "clock": "ok", "workflows": "ok", "handlers": "ok"} == level_of
    assert level_of | {"orchestrators": "warn", "workers": "warn", "dead letters": "ok", "stuck jobs": "ok"} == level_of


@pytest.mark.slow
def test_the_external_database(geomill: Geomill, database: str, external_database: str, empty_database: str) -> None:
    def look(url: str) -> str:
        ended = geomill("doctor", GEOMILL_DATABASE_URL=database, GEOMILL_EXTERNAL_DATABASE_URL=url)
        return next(line for line in ended.out.splitlines() if "external database" in line)

    assert look(external_database).startswith("ok   external database: up to date, pgstac ")
    assert look(empty_database).startswith("fail external database: the schema is incomplete: ")
    variables = {"GEOMILL_DATABASE_URL": database, "GEOMILL_EXTERNAL_DATABASE_URL": empty_database}
    output = geomill("db", "migrate", **variables).out
    assert "external zone:" in output
    assert "done: create table external.assets" in output
    assert look(empty_database).startswith("ok ")


@pytest.mark.slow
def test_what_the_database_has_lost_is_noticed_by_every_command_and_mended(geomill: Geomill, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("DROP TRIGGER collections_trigger ON pgstac.collections")
        conn.execute("ALTER TABLE dagapp.dag_jobs DISABLE TRIGGER dag_jobs_follow")
    place = {"GEOMILL_DATABASE_URL": database}
    doctor = geomill("doctor", **place)
    assert doctor.code == 1
    assert "fail schema: the schema is incomplete: the trigger collections_trigger on pgstac.collections" in doctor.out
    check = geomill("catalogue", "check", **place)
    assert check.code == 1
    assert "the trigger collections_trigger on pgstac.collections is missing" in check.out + check.err
    status = geomill("db", "status", **place).out
    assert "would put back the trigger collections_trigger on pgstac.collections" in status
    assert "would create trigger dag_jobs_follow on dagapp.dag_jobs" in status
    assert geomill("db", "migrate", **place).code == 0
    assert geomill("catalogue", "check", **place).code == 0
    assert geomill("db", "status", **place).out.endswith("up to date\n")


def test_what_is_wrong_comes_with_a_remedy(geomill: Geomill, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO dagapp.dag_dead_letters (queue_name, message_id, body, reason, description)"
            " VALUES ('dag-jobs', 'm', '{}', 'MalformedMessage', 'x')"
        )
        conn.execute(
            "INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)"
            " VALUES ('h', 'w', 1, '{}')"
        )
        conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, definition_hash, status, started_at, updated_at)"
            " VALUES ('j', 'w', 'h', 'running', now(), now() - interval '1 hour')"
        )
    ended = geomill("doctor", GEOMILL_DATABASE_URL=database)
    assert ended.code == 0
    assert "warn dead letters: 1 on dag-jobs (MalformedMessage)" in ended.out
    assert "warn stuck jobs: j (w, quiet for 60 min)" in ended.out
    assert "     → " in ended.out


@pytest.mark.slow
def test_what_waits_in_vain_and_disks_that_are_nearly_full(geomill: Geomill, database: str, data: Path) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("INSERT INTO dagapp.dag_unserved_queues (queue_name) VALUES ('gpu'), ('dag-jobs.unknown')")
        conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body)"
            """ VALUES ('dag-jobs.unknown', 'j', '{"job_id": "j", "workflow_id": "new"}')"""
        )
    variables = {"GEOMILL_DATABASE_URL": database, "GEOMILL_SPACE_WARNING_MB": "1000000000000"}
    ended = geomill("--data", str(data), "doctor", **variables)
    assert ended.code == 0
    assert "warn queues: nobody serves the queue 'gpu': what is in it waits, since 20" in ended.out
    assert "→ run 'geomill worker --queue gpu'" in ended.out
    assert "warn queues: no orchestrator knows the workflow 'new': its submissions wait, since 20" in ended.out
    assert "warn data folder: " in ended.out
    assert "warn silver: the disk is nearly full: " in ended.out
    shown = geomill("jobs", "show", "j", GEOMILL_DATABASE_URL=database)
    assert "no orchestrator knows the workflow 'new'" in shown.out


@pytest.mark.slow
def test_no_schema_no_server_bad_settings(geomill: Geomill, empty_database: str, tmp_path: Path) -> None:
    ended = geomill("doctor", GEOMILL_DATABASE_URL=empty_database)
    assert ended.code == 1
    assert "fail schema: " in ended.out
    assert "geomill db migrate" in ended.out
    ended = geomill("doctor", "--json", GEOMILL_DATABASE_URL="postgresql://me:s3cret@127.0.0.1:1/maps")
    assert (ended.code, levels(ended.json)["database"]) == (1, "fail")
    assert "s3cret" not in ended.out
    ended = geomill("doctor", GEOMILL_DATABASE_ULR="x")
    assert (ended.code, ended.out.startswith("fail settings")) == (1, True)
    (tmp_path / "bad.yaml").write_text("workflow_id: [broken")
    ended = geomill("--workflows", str(tmp_path), "doctor", "--json", GEOMILL_DATABASE_URL=empty_database)
    assert levels(ended.json)["workflows"] == "fail"


@pytest.mark.slow
def test_service_bus(geomill: Geomill, database: str) -> None:
    with running_peer() as peer:
        variables = {
            "GEOMILL_DATABASE_URL": database,
            "GEOMILL_BROKER": "servicebus",
            "SERVICE_BUS_CONNECTION_STRING": str(peer.options.connection_string),
        }
        assert levels(geomill("doctor", "--json", **variables).json)["service bus"] == "ok"
    ended = geomill("doctor", **variables)
    assert ended.code == 1
    assert "fail service bus: the queue 'dag-jobs' of Service Bus cannot be used: " in ended.out
    assert "c2VjcmV0" not in ended.out
    assert geomill("doctor", **{**variables, "GEOMILL_BROKER": "postgres"}).code == 0


def test_it_makes_no_database_of_its_own(geomill: Geomill, data: Path) -> None:
    ended = geomill("--data", str(data), "doctor")
    assert ended.code == 0
    assert "database: none yet" in ended.out
    assert not data.exists()


@pytest.mark.slow
def test_a_job_is_steered_from_the_shell(geomill: Geomill, database: str) -> None:
    submitted = geomill("jobs", "submit", "hello_world", "--json", GEOMILL_DATABASE_URL=database)
    job_id = submitted.json["job_id"]
    ended = geomill("jobs", "cancel", job_id, "--reason", "no need", GEOMILL_DATABASE_URL=database)
    assert (ended.code, ended.out) == (0, f"requested: cancel {job_id}\n")
    ended = geomill("jobs", "watch", job_id, "--json", GEOMILL_DATABASE_URL=database)
    assert ended.code == 1
    assert ended.json == {"job_id": job_id, "status": "cancelled", "result": None, "error": "no need"}
    assert geomill("jobs", "pause", job_id, GEOMILL_DATABASE_URL=database).code == 1
    assert geomill("jobs", "retry", "nothing", GEOMILL_DATABASE_URL=database).code == 2
