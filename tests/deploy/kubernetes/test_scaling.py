"""KEDA's queries, run as KEDA's role on a real queue."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from geomill.store.connection import connect
from geomill.store.migrate import migrate
from tests.deploy.kubernetes.manifests import FOLDER, KustomizeOverlay
from tests.owners import PASSWORD, login

SEND = """
    INSERT INTO dagapp.dag_queue (queue_name, message_id, body, visible_at, lease_token, leased_until)
    SELECT %s, gen_random_uuid(), '{}', now() + %s * interval '1 second', %s, %s::timestamptz
    FROM generate_series(1, %s)
"""


def queries() -> dict[str, str]:
    scalers = KustomizeOverlay("postgres").of_kind("ScaledObject")
    return {s["metadata"]["name"]: s["spec"]["triggers"][0]["metadata"]["query"] for s in scalers}


@pytest.fixture
def scaler(database: str) -> Iterator[str]:
    """The URL of KEDA's role, with the rights of `scaler.sql`."""
    role = f"scaler_{uuid4().hex[:12]}"
    text = (FOLDER / "scaler.sql").read_text(encoding="utf-8").replace("geomill_scaler", role)
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), PASSWORD))
        owner.execute(text.replace(':"DBNAME"', sql.Identifier(owner.info.dbname).as_string()))  # type: ignore[arg-type]
        yield login(database, role)
        owner.execute(f"DROP OWNED BY {role}")
        owner.execute(f"DROP ROLE {role}")


def count(url: str, name: str) -> int:
    with psycopg.connect(url) as conn:
        row = conn.execute(queries()[name]).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])


def send(
    database: str, queue: str, messages: int, *, delay: float = 0, token: int | None = None, until: str | None = None
) -> None:
    with psycopg.connect(database) as conn:
        conn.execute(SEND, (queue, delay, token, until, messages))


def test_waiting_and_running_tasks_of_its_own_queues_count(database: str, scaler: str) -> None:
    assert (count(scaler, "worker-light"), count(scaler, "worker-heavy")) == (0, 0)
    send(database, "functionapp-tasks", 3)
    send(database, "dag-worker-tasks", 4)
    send(database, "container-tasks", 1)
    send(database, "container-tasks", 2, token=7, until="infinity")
    send(database, "container-tasks", 9, delay=3600)
    send(database, "dag-jobs", 5)
    assert (count(scaler, "worker-light"), count(scaler, "worker-heavy")) == (7, 3)


def test_a_full_queue_costs_a_bounded_number_of_rows(database: str, scaler: str) -> None:
    send(database, "container-tasks", 12_000)
    assert count(scaler, "worker-heavy") == 10_000


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT body FROM dagapp.dag_queue",
        "SELECT * FROM dagapp.dag_jobs",
        "SELECT * FROM app.api_keys",
        "DELETE FROM dagapp.dag_queue",
    ],
)
def test_the_role_sees_nothing_else(scaler: str, statement: str) -> None:
    with psycopg.connect(scaler) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(statement)  # type: ignore[call-overload]


async def test_a_migration_leaves_the_role_its_rights(database: str, scaler: str) -> None:
    async with await connect(database) as conn:
        await migrate(conn)
    assert count(scaler, "worker-heavy") == 0
