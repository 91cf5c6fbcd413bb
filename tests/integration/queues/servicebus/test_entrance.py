"""Submissions of other applications, which come through Service Bus."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from geomill.domain.engine.message import JOBS_QUEUE
from geomill.domain.states import JobStatus
from geomill.engine.redrive import redrive
from geomill.errors import BusUnavailable
from geomill.queues.postgres_broker import PostgresBroker
from geomill.queues.servicebus import Bus
from geomill.queues.servicebus.bus import Posting
from tests.integration.engine.platform import EnginePlatform
from tests.integration.queues.servicebus.conftest import MakePlatform, Peer
from tests.integration.queues.servicebus.test_permits import until
from tests.servicebus.running import LEFT_OPEN, own

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

DAY = 86_400.0
HELLO = {"workflow_id": "hello_world", "input_params": {"name": "Ada"}}


@pytest.fixture
async def platform(make_platform: MakePlatform, peer: Peer) -> EnginePlatform:
    platform = make_platform()
    platform.orchestrator()
    platform.worker()
    await until(lambda: peer.tell("depth", JOBS_QUEUE)["receivers"])
    return platform


async def send(bus: Bus, body: Any, message_id: str = "m1") -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    await bus.send(JOBS_QUEUE, [Posting(own(message_id), text, DAY)])


async def jobs_of(platform: EnginePlatform) -> list[dict[str, Any]]:
    return await platform.rows(
        "SELECT job_id, status, workflow_id, submitted_by, on_behalf_of, correlation_id, asset_id, tenant, priority"
        " FROM dagapp.dag_jobs"
    )


async def refused(platform: EnginePlatform, peer: Peer) -> tuple[str, str]:
    """The reason and the description of the only dead letter, which is the same in both places."""
    await until(lambda: peer.tell("depth", JOBS_QUEUE)["dead"])
    [[reason, description]] = peer.tell("depth", JOBS_QUEUE)["dead"]
    [letter] = await platform.rows("SELECT reason, description FROM dagapp.dag_dead_letters")
    assert letter == {"reason": reason, "description": description}
    assert await jobs_of(platform) == []
    return reason, description


async def test_a_message_in_the_format_of_the_documents_is_a_job(platform: EnginePlatform, bus: Bus) -> None:
    await send(bus, {**HELLO, "correlation_id": "ddh-1", "submitted_by": "ddh", "priority": 3, "colour": "blue"})
    [row] = await platform.rows_soon("SELECT job_id FROM dagapp.dag_jobs")
    job = await platform.ended(row["job_id"])
    assert job.status is JobStatus.COMPLETED
    assert job.result_data == {"message": "Hello, Ada!"}
    assert (job.submitted_by, job.on_behalf_of, job.correlation_id) == ("service-bus", "ddh", "ddh-1")
    assert job.priority == 3


async def test_a_redelivery_is_the_same_job(platform: EnginePlatform, bus: Bus, peer: Peer) -> None:
    """The peer detects duplicates by the id of the message, which another sender may not set: so the body names it."""
    for number in range(3):
        await send(bus, {**HELLO, "message_id": "order 7"}, f"delivery {number}")
    await until(lambda: peer.tell("depth", JOBS_QUEUE)["waiting"] == 0)
    [row] = await platform.rows_soon("SELECT job_id FROM dagapp.dag_jobs")
    await platform.ended(row["job_id"])
    await send(bus, {**HELLO, "message_id": "order 7"}, "delivery 4")
    await send(bus, {**HELLO, "message_id": "order 8"}, "delivery 5")
    async with asyncio.timeout(60):
        while len(await jobs_of(platform)) < 2:  # noqa: ASYNC110  in the database
            await asyncio.sleep(0.05)
    assert len(await jobs_of(platform)) == 2


async def test_a_settlement_that_is_lost_makes_no_second_job(platform: EnginePlatform, bus: Bus, peer: Peer) -> None:
    for number in range(20):
        await send(bus, HELLO, f"m{number}")
        if number % 5 == 0:
            peer.tell("expire", JOBS_QUEUE)
    await until(lambda: peer.tell("depth", JOBS_QUEUE)["waiting"] == 0)
    async with asyncio.timeout(60):
        while len(await jobs_of(platform)) < 20:  # noqa: ASYNC110  in the database
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    assert len(await jobs_of(platform)) == 20


@pytest.mark.parametrize(
    ("body", "reason", "description"),
    [
        ("no JSON", "MalformedMessage", "body: Invalid JSON"),
        ("[1]", "MalformedMessage", "body: Input should be an object"),
        ({"input_params": {}}, "MalformedMessage", "workflow_id: Field required"),
        ({**HELLO, "priority": 99}, "MalformedMessage", "priority: Input should be less than or equal to 10"),
        ({**HELLO, "input_params": {"name": "a\x00b"}}, "MalformedMessage", "input_params: Value error"),
        ({"workflow_id": "no_such"}, "WorkflowNotFound", "no_such"),
        ({"workflow_id": "hello_world", "input_params": {"nam": "Ada"}}, "InvalidInputs", "nam"),
        ({"workflow_id": "export_asset", "input_params": {}}, "Forbidden", "export_asset"),
        ({**HELLO, "callback_url": "http://"}, "InvalidInputs", "callback_url"),
        ({**HELLO, "job_id": "../../silver"}, "MalformedMessage", "job_id: String should match pattern"),
        ({**HELLO, "job_id": "%"}, "MalformedMessage", "job_id: String should match pattern"),
        ({**HELLO, "submitted_at": "9999-12-31T23:59:59-12:00"}, "MalformedMessage", "submitted_at: Value error"),
        ({**HELLO, "submitted_at": "0001-01-01T00:00:00+12:00"}, "MalformedMessage", "submitted_at: Value error"),
    ],
)
async def test_a_refused_message_is_a_dead_letter_with_its_reason(
    platform: EnginePlatform, bus: Bus, peer: Peer, body: Any, reason: str, description: str
) -> None:
    await send(bus, body)
    shown = await refused(platform, peer)
    assert shown[0] == reason
    assert description in shown[1]


@pytest.mark.parametrize("name", ["job_id", "idempotency_key", "message_id"])
async def test_another_submission_with_an_id_that_is_taken_is_refused(
    platform: EnginePlatform, bus: Bus, peer: Peer, name: str
) -> None:
    """Its sender would otherwise wait for ever for a job that nobody makes."""
    await send(bus, {**HELLO, name: "k"}, "first")
    [row] = await platform.rows_soon("SELECT job_id FROM dagapp.dag_jobs")
    await platform.ended(row["job_id"])
    await send(bus, {**HELLO, name: "k"}, "first again")
    await send(bus, {"workflow_id": "hello_world", "input_params": {"name": "Eve"}, name: "k"}, "other")
    await until(lambda: peer.tell("depth", JOBS_QUEUE)["dead"])
    [[reason, description]] = peer.tell("depth", JOBS_QUEUE)["dead"]
    assert reason == "Conflict"
    assert "input_params.name" in description
    assert len(await jobs_of(platform)) == 1


@pytest.mark.parametrize(
    ("body", "message_id"),
    [
        ("no JSON", "a\x00b"),
        ({**HELLO, "input_params": {"a\x00b": 1}}, "m1"),
        ({**HELLO, "input_params": {"name": "\ud800"}}, "m1"),
        ("\x00", "m1"),
        ("[" * 100_000, "m1"),
    ],
)
async def test_a_message_that_no_table_can_hold_stops_nobody(
    platform: EnginePlatform, bus: Bus, peer: Peer, body: Any, message_id: str
) -> None:
    await send(bus, body, message_id)
    await refused(platform, peer)
    await send(bus, HELLO, "good")
    [row] = await platform.rows_soon("SELECT job_id FROM dagapp.dag_jobs")
    assert (await platform.ended(row["job_id"])).status is JobStatus.COMPLETED


async def test_a_refused_message_is_refused_again_when_it_is_sent_from_the_dead_letters(
    platform: EnginePlatform, bus: Bus, peer: Peer
) -> None:
    """A sender to Service Bus must not start workflows that only decisions start, by way of an operator's redrive."""
    await send(bus, {"workflow_id": "export_asset", "asset_id": "a" * 32, "input_params": {}, "purpose": "export"})
    await refused(platform, peer)
    async with platform.pool.connection() as conn:
        assert len(await redrive(conn, PostgresBroker(platform.pool, "operator"), JOBS_QUEUE, None)) == 1
    [letter] = await platform.rows_soon("SELECT reason FROM dagapp.dag_dead_letters")
    assert letter == {"reason": "MalformedMessage"}
    assert await jobs_of(platform) == []


async def test_fields_that_only_geomill_sets_are_ignored(platform: EnginePlatform, bus: Bus) -> None:
    own = {"asset_id": "a" * 32, "request_id": "r", "tenant": "ddh", "purpose": "export", "retry_of": "x"}
    await send(bus, {**HELLO, **own})
    await platform.rows_soon("SELECT FROM dagapp.dag_jobs")
    [job] = await jobs_of(platform)
    assert (job["asset_id"], job["tenant"]) == (None, "")


async def test_many_messages_arrive_while_connections_are_cut(platform: EnginePlatform, bus: Bus, peer: Peer) -> None:
    for number in range(60):
        await bus.send(JOBS_QUEUE, [Posting(own(f"m{number}"), json.dumps(HELLO), DAY)])
        if number in (20, 40):
            await asyncio.sleep(0.2)
            peer.tell("expire", JOBS_QUEUE)
    peer.tell("cut")
    async with asyncio.timeout(90):
        while len(await jobs_of(platform)) < 60:  # noqa: ASYNC110  in the database
            await asyncio.sleep(0.05)
    assert len(await jobs_of(platform)) == 60


@pytest.mark.slow
async def test_an_outage_is_logged_once_and_its_end_too(
    platform: EnginePlatform, bus: Bus, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    """Service Bus may be away for hours, and each attempt would be a line."""
    peer.tell("refuse", 9)
    await asyncio.sleep(9)
    with caplog.at_level("INFO", logger="geomill"):
        await send_when_back(bus)
        await platform.rows_soon("SELECT FROM dagapp.dag_jobs")
        await until(lambda: "submissions are taken from Service Bus again" in caplog.text)
    lines = [record for record in caplog.records if record.name == "geomill.engine.maintenance.entrance"]
    assert len({record.getMessage() for record in lines}) == len(lines)
    assert not logging.getLogger("azure.servicebus").isEnabledFor(logging.INFO)


async def send_when_back(bus: Bus) -> None:
    while True:
        try:
            return await send(bus, HELLO)
        except BusUnavailable:
            await asyncio.sleep(0.2)
