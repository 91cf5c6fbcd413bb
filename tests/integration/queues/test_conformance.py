"""The behaviour that the protocol requires of every broker."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from geomill.domain.engine.message import JobQueueMessage, TaskMessage
from geomill.queues.broker import EXPIRED, MALFORMED, TOO_MANY_DELIVERIES, Delivered, Message
from tests.integration.queues.conftest import MAX_DELIVERIES, QUEUE, BrokerBench, job


async def receive(bench: BrokerBench, limit: int = 10) -> list[Delivered[JobQueueMessage]]:
    return await bench.broker.receive(QUEUE, JobQueueMessage, limit)


async def ids(bench: BrokerBench, limit: int = 10) -> list[str]:
    return [delivery.message_id for delivery in await receive(bench, limit)]


async def test_what_is_sent_is_received_and_completed(bench: BrokerBench) -> None:
    await bench.send(job("a"))
    (got,) = await receive(bench)
    assert (got.queue_name, got.message_id, got.body.workflow_id, got.delivery_count) == (QUEUE, "a", "hello_world", 1)
    assert await bench.broker.complete([got]) == {got.receipt}
    assert await receive(bench) == []
    assert (await bench.broker.depth(QUEUE)).leased == 0


async def test_a_send_is_part_of_the_senders_transaction(bench: BrokerBench) -> None:
    async def fail() -> None:
        async with bench.transaction() as transaction:
            await bench.broker.send(transaction, QUEUE, [job("a")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await receive(bench) == []


async def test_queues_do_not_mix(bench: BrokerBench) -> None:
    await bench.send(job("a"))
    task = TaskMessage(task_id="t", job_id="j", node_id="n", handler="echo", timeout_seconds=1, attempt=1)
    await bench.send(Message("t", task), queue="functionapp-tasks")
    (got,) = await bench.broker.receive("functionapp-tasks", TaskMessage, 10)
    assert got.body == task
    assert await ids(bench) == ["a"]


async def test_higher_priority_first_then_in_order(bench: BrokerBench) -> None:
    await bench.send(job("low"), job("high", priority=9), job("late"), job("middle", priority=5))
    assert [(await ids(bench, 1))[0] for _ in range(4)] == ["high", "middle", "low", "late"]


async def test_sent_twice_stored_once(bench: BrokerBench) -> None:
    await bench.send(job("a"), job("a"))
    await bench.send(job("a"))
    assert await ids(bench) == ["a"]


async def test_a_scheduled_message_is_not_seen_before_its_time(bench: BrokerBench) -> None:
    await bench.send(job("a", visible_at=datetime.now(UTC) + timedelta(seconds=60)))
    assert await receive(bench) == []
    assert (await bench.broker.depth(QUEUE)).scheduled == 1
    await bench.pass_time(61)
    assert await ids(bench) == ["a"]


async def test_two_receivers_never_get_the_same_message(bench: BrokerBench) -> None:
    await bench.send(*(job(str(number)) for number in range(100)))
    batches = await asyncio.gather(
        *(broker.receive(QUEUE, JobQueueMessage, 7) for broker in (bench.broker, bench.other) for _ in range(10))
    )
    got = [delivery.message_id for batch in batches for delivery in batch]
    assert len(got) == len(set(got)) == 100


async def test_a_lease_that_ends_gives_the_message_to_another(bench: BrokerBench) -> None:
    await bench.send(job("a"))
    (first,) = await receive(bench)
    assert await bench.other.receive(QUEUE, JobQueueMessage, 1) == []
    await bench.pass_time(61)
    (second,) = await bench.other.receive(QUEUE, JobQueueMessage, 1)
    assert second.delivery_count == 2
    for settle in (bench.broker.complete, bench.broker.abandon, bench.broker.renew):
        assert await settle([first]) == set()
    assert await bench.broker.dead_letter([first], "Late", "too late") == set()
    assert await bench.other.complete([second]) == {second.receipt}


async def test_a_lease_that_is_renewed_goes_on(bench: BrokerBench) -> None:
    await bench.send(job("a"))
    (delivery,) = await receive(bench)
    assert await bench.broker.renew([delivery], 300) == {delivery.receipt}
    await bench.pass_time(200)
    assert await bench.other.receive(QUEUE, JobQueueMessage, 1) == []
    assert await bench.broker.complete([delivery]) == {delivery.receipt}
    assert await bench.broker.complete([delivery]) == set()


async def test_abandoned_with_a_delay_it_comes_back_later(bench: BrokerBench) -> None:
    await bench.send(job("a"), job("b"))
    a, b = await receive(bench)
    assert await bench.broker.abandon([a]) == {a.receipt}
    assert await bench.broker.abandon([b], 30) == {b.receipt}
    assert await ids(bench) == ["a"]
    await bench.pass_time(31)
    assert await ids(bench) == ["b"]


async def test_dead_lettered_with_reason_and_description(bench: BrokerBench) -> None:
    await bench.send(job("a", priority=3))
    (delivery,) = await receive(bench)
    assert await bench.broker.dead_letter([delivery], "Unwanted", "nobody wants it") == {delivery.receipt}
    (dead,) = await bench.broker.peek_dead_letters(QUEUE, 10)
    assert (dead.message_id, dead.reason, dead.description) == ("a", "Unwanted", "nobody wants it")
    assert dead.body["job_id"] == "a"
    assert await bench.broker.peek_dead_letters("other", 10) == []
    assert len(await bench.broker.peek_dead_letters(None, 10)) == 1


async def test_what_cannot_be_read_is_dead_lettered_and_the_rest_is_received(bench: BrokerBench) -> None:
    await bench.corrupt("bad")
    await bench.send(job("good"))
    assert await ids(bench, 1) == ["good"]
    (dead,) = await bench.broker.peek_dead_letters(QUEUE, 10)
    assert (dead.message_id, dead.reason, dead.body) == ("bad", MALFORMED, [1])
    assert dead.description


async def test_too_many_deliveries_end_it(bench: BrokerBench) -> None:
    await bench.send(job("a"))
    for _ in range(MAX_DELIVERIES):
        await bench.broker.abandon(await receive(bench))
    assert await receive(bench) == []
    (dead,) = await bench.broker.peek_dead_letters(QUEUE, 10)
    assert (dead.reason, dead.description) == (TOO_MANY_DELIVERIES, "it was delivered 3 times and never completed")


async def test_past_its_time_to_live_it_is_dead(bench: BrokerBench) -> None:
    await bench.send(job("a", ttl_seconds=30), job("b"))
    await bench.pass_time(31)
    assert await ids(bench) == ["b"]
    assert [dead.reason for dead in await bench.broker.peek_dead_letters(QUEUE, 10)] == [EXPIRED]


async def test_depth_and_peek_change_nothing(bench: BrokerBench) -> None:
    await bench.send(job("a"), job("b", priority=1), job("c", visible_at=datetime.now(UTC) + timedelta(hours=1)))
    await receive(bench, 1)
    depth = await bench.broker.depth(QUEUE)
    assert (depth.waiting, depth.scheduled, depth.leased, depth.dead) == (1, 1, 1, 0)
    assert depth.oldest is not None
    assert 0 <= (depth.oldest_seconds or -1) < 60
    assert [message.message_id for message in await bench.broker.peek(QUEUE, 10)] == ["a", "c"]
    again = await bench.broker.depth(QUEUE)
    assert (again.waiting, again.scheduled, again.leased) == (1, 1, 1)
    assert (await bench.broker.depth("nothing")).waiting == 0


async def _bury(bench: BrokerBench, *names: str) -> None:
    await bench.send(*map(job, names))
    await bench.broker.dead_letter(await receive(bench), "Unwanted", "for a test")


async def test_redriven_it_is_a_new_message(bench: BrokerBench) -> None:
    await _bury(bench, "a", "b", "c")
    async with bench.transaction() as transaction:
        sent = await bench.broker.redrive(transaction, QUEUE, ["b"], 10)
    assert [message.message_id for message in sent] == ["b"]
    (got,) = await receive(bench)
    assert (got.message_id, got.delivery_count, got.body.workflow_id) == ("b", 1, "hello_world")
    async with bench.transaction() as transaction:
        sent = await bench.broker.redrive(transaction, QUEUE, None, 10)
    assert {message.message_id for message in sent} == {"a", "c"}
    assert await bench.broker.peek_dead_letters(QUEUE, 10) == []


async def test_a_dead_letter_whose_id_waits_again_stays(bench: BrokerBench) -> None:
    await _bury(bench, "a")
    await bench.send(job("a"))
    async with bench.transaction() as transaction:
        assert await bench.broker.redrive(transaction, QUEUE, None, 10) == []
    assert [letter.message_id for letter in await bench.broker.peek_dead_letters(QUEUE, 10)] == ["a"]
    assert await ids(bench) == ["a"]


async def test_two_redrives_at_once_send_once(bench: BrokerBench) -> None:
    await _bury(bench, "a", "b")

    async def redrive() -> list[str]:
        async with bench.transaction() as transaction:
            return [message.message_id for message in await bench.broker.redrive(transaction, QUEUE, None, 10)]

    sent = await asyncio.gather(*(redrive() for _ in range(4)))
    assert sorted(name for batch in sent for name in batch) == ["a", "b"]
    assert sorted(await ids(bench)) == ["a", "b"]
