"""Microsoft's client over a real socket: what is sent arrives, and each kind of failure has its error."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from azure.servicebus.exceptions import MessageLockLostError

from geomill.errors import BusUnavailable, SettingsError
from geomill.queues.servicebus import Bus, BusOptions
from geomill.queues.servicebus.bus import Posting, make_bus, message_id_of
from tests.identity_endpoint import identity_endpoint
from tests.integration.queues.servicebus.conftest import Peer
from tests.servicebus.running import LEFT_OPEN, own, running_peer

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

DAY = 86_400.0


def postings(count: int, size: int = 10, **fields: object) -> list[Posting]:
    return [Posting(own(f"m{number}"), "x" * size, DAY, **fields) for number in range(count)]  # type: ignore[arg-type]


async def test_messages_arrive_with_their_fields(bus: Bus) -> None:
    await bus.send("orders", [Posting(own("m1"), '{"a": 1}', 3600.0, correlation_id="job")])
    async with bus.receiver("orders") as receiver:
        [message] = await receiver.receive_messages(5, max_wait_time=5)
        assert (str(message), message.message_id, message.correlation_id) == ('{"a": 1}', own("m1"), "job")
        assert message.content_type == "application/json"
        assert message.time_to_live == timedelta(hours=1)
        await receiver.complete_message(message)


async def test_more_than_a_batch_holds_is_sent_in_several(bus: Bus, peer: Peer) -> None:
    assert await bus.send("orders", postings(60, 10_000)) == []
    assert peer.tell("depth", "orders")["waiting"] == 60


async def test_a_message_that_is_too_large_is_told_and_the_others_are_sent(bus: Bus, peer: Peer) -> None:
    small, large = postings(3), Posting(own("large"), "x" * 400_000, DAY)
    [unsent] = await bus.send("orders", [small[0], large, *small[1:]])
    assert unsent.posting is large
    assert "larger than the queue allows" in unsent.reason
    assert peer.tell("depth", "orders")["waiting"] == 3


async def test_a_message_that_is_due_later_waits_there(bus: Bus, peer: Peer) -> None:
    await bus.send("orders", postings(1, due_at=datetime.now(UTC) + timedelta(seconds=4)))
    assert peer.tell("depth", "orders")["scheduled"] == 1
    async with bus.receiver("orders") as receiver:
        assert await receiver.receive_messages(1, max_wait_time=0.3) == []
        assert len(await receiver.receive_messages(1, max_wait_time=5)) == 1


async def test_the_same_message_sent_twice_is_one(bus: Bus, peer: Peer) -> None:
    for _ in range(2):
        await bus.send("orders", postings(3))
    assert peer.tell("depth", "orders")["waiting"] == 3


async def test_senders_share_one_link_and_may_be_used_at_the_same_time(bus: Bus, peer: Peer) -> None:
    await bus.warm_up(["orders", "others"])
    await asyncio.gather(*(bus.send("orders", [Posting(own(f"m{n}"), "x", DAY)]) for n in range(20)))
    assert peer.tell("depth", "orders")["waiting"] == 20


@pytest.mark.slow
async def test_a_busy_server_is_an_error_that_passes(bus: Bus, peer: Peer) -> None:
    peer.tell("throttle", 60)
    with pytest.raises(BusUnavailable, match="the queue 'orders' of Service Bus cannot be used") as caught:
        await bus.send("orders", postings(1))
    assert not caught.value.lasting
    peer.tell("throttle", 0)
    assert await bus.send("orders", postings(1)) == []


@pytest.mark.parametrize("command", ["cut", "refuse 1"])
async def test_after_a_cut_the_next_send_connects_again(bus: Bus, peer: Peer, command: str) -> None:
    await bus.send("orders", postings(1))
    peer.tell(*command.split())
    async with asyncio.timeout(60):
        while True:
            try:
                await bus.send("orders", [Posting(own("after"), "x", DAY)])
                break
            except BusUnavailable as error:
                assert not error.lasting  # noqa: PT017
                await asyncio.sleep(0.1)
    assert peer.tell("depth", "orders")["waiting"] == 2


async def test_nobody_listens(make_client: Callable[[BusOptions], Bus]) -> None:
    gone = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=v;UseDevelopmentEmulator=true;"
    bus = make_client(BusOptions(connection_string=gone))
    with pytest.raises(BusUnavailable) as caught:
        await bus.send("orders", postings(1))
    assert "SharedAccessKey" not in str(caught.value)
    with pytest.raises(BusUnavailable):
        async with bus.receiver("orders"):
            pass


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("SharedAccessKey=c2VjcmV0", "cannot be used"),
        ("Endpoint=sb://maps.servicebus.windows.net/;SharedAccessKey=c2VjcmV0", "cannot be used"),
        ("c2VjcmV0", "cannot be used"),
        (
            "Endpoint=sb://maps.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;EntityPath=dag-jobs",
            "leads to 'dag-jobs' alone",
        ),
    ],
)
def test_a_connection_string_that_is_none_is_an_error_without_its_key(text: str, trouble: str) -> None:
    with pytest.raises(SettingsError, match=trouble) as caught:
        make_bus(BusOptions(connection_string=text))
    assert "c2VjcmV0" not in str(caught.value)


def test_long_ids_stay_different() -> None:
    first, second = "a" * 150 + "1", "a" * 150 + "2"
    assert message_id_of("short") == "short"
    assert message_id_of(first) != message_id_of(second)
    assert len(message_id_of(first)) <= 128


# The peer itself


async def test_the_peer_refuses_to_settle_without_a_lock(bus: Bus, peer: Peer) -> None:
    """The client looks at its own clock first, so it is made to believe in its lock."""
    await bus.send("orders", postings(1))
    async with bus.receiver("orders") as receiver:
        [message] = await receiver.receive_messages(1, max_wait_time=5)
        peer.tell("expire", "orders")
        assert message.locked_until_utc is not None
        assert message.locked_until_utc > datetime.now(UTC)
        with pytest.raises(MessageLockLostError):
            await receiver.complete_message(message)
        with pytest.raises(MessageLockLostError):
            await receiver.renew_message_lock(message)
        [again] = await receiver.receive_messages(1, max_wait_time=5)
        assert again.delivery_count == 1
        await receiver.complete_message(again)
    assert peer.tell("depth", "orders") == {"waiting": 0, "locked": 0, "scheduled": 0, "dead": [], "receivers": 0}


@pytest.mark.usefixtures("steered")
async def test_the_peer_buries_what_is_given_back_too_often(bus: Bus, peer: Peer) -> None:
    await bus.send("orders", postings(1))
    async with bus.receiver("orders") as receiver:
        for _ in range(10):
            [message] = await receiver.receive_messages(1, max_wait_time=5)
            await receiver.abandon_message(message)
    assert peer.tell("depth", "orders")["dead"] == [["MaxDeliveryCountExceeded", ""]]


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


TLS_PORT = 5671
"""The client uses no other one with TLS."""


async def test_with_tls_the_certificate_is_checked(
    make_client: Callable[[BusOptions], Bus], authority: tuple[Path, Path]
) -> None:
    certificate, key = map(str, authority)
    text = "Endpoint=sb://localhost;SharedAccessKeyName=k;SharedAccessKey=v"
    with running_peer("--certificate", certificate, "--key", key, port=TLS_PORT) as peer:
        trusting = make_client(BusOptions(connection_string=text, certificates=certificate))
        assert await trusting.send("orders", postings(2)) == []
        assert peer.tell("depth", "orders")["waiting"] == 2
        with pytest.raises(BusUnavailable):
            await make_client(BusOptions(connection_string=text)).send("orders", postings(1))
        assert peer.tell("depth", "orders")["waiting"] == 2


async def test_a_managed_identity_signs_in(
    make_client: Callable[[BusOptions], Bus], authority: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = map(str, authority)
    with identity_endpoint() as endpoint:
        for name, value in endpoint.environ.items():
            monkeypatch.setenv(name, value)
        with running_peer("--certificate", certificate, "--key", key, port=TLS_PORT) as peer:
            options = BusOptions(namespace="127.0.0.1", client_id="bus", certificates=certificate)
            bus = make_client(options)
            assert await bus.send("orders", postings(1)) == []
            claims = jwt.decode(peer.tell("token")["token"], options={"verify_signature": False})
            assert claims["aud"].startswith("https://servicebus.azure.net")
            assert endpoint.requests[-1]["client_id"] == "bus"
        endpoint.away = True
        stranger = make_client(BusOptions(namespace="127.0.0.1", client_id="another", certificates=certificate))
        with pytest.raises(BusUnavailable):
            await stranger.send("orders", postings(1))
