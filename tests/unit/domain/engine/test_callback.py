"""Where calls may go, how they are signed, when they are tried again."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest

from geomill.domain.engine.callback import GIVE_UP_AFTER, Allowance, Callback, check_callback_url, retry_at, sign
from geomill.errors import InputError

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("url", [None, "http://example.org", "https://example.org:8443/a?b=c", "http://[2001:db8::1]/"])
def test_a_url_that_may_be_called_later(url: str | None) -> None:
    check_callback_url(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.org", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("example.org/hook", "must begin with http"),
        ("http:///hook", "has no host"),
        ("http://ada:secret@example.org", "user or a password"),
        ("http://example.org:99999/", "cannot be read"),
        ("http://[::1/", "cannot be read"),
        ("http://example.org/a b", "a space"),
        ("http://example.org/\x07", "control character"),
    ],
)
def test_a_url_that_may_not(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_callback_url(url)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:db8::1",
        "2001::1",
    ],
)  # fmt: skip
def test_addresses_of_the_inside_are_not_called(address: str) -> None:
    assert not Allowance().permits("example.org", ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet_are(address: str) -> None:
    assert Allowance().permits("example.org", ip_address(address))


def test_what_is_allowed_beside() -> None:
    allowed = Allowance.of(["Hooks.Internal", "10.0.0.0/8", "127.0.0.1", "fd00::/8"])
    assert allowed.permits("hooks.internal.", ip_address("192.168.1.1"))
    assert allowed.permits("any", ip_address("10.2.3.4"))
    assert allowed.permits("any", ip_address("::ffff:10.2.3.4"))
    assert allowed.permits("any", ip_address("127.0.0.1"))
    assert allowed.permits("any", ip_address("fd12::1"))
    assert not allowed.permits("any", ip_address("127.0.0.2"))
    assert not allowed.permits("other.internal", ip_address("192.168.1.1"))


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "10.0.0.1/8", "http://host", "fd00:::/8"])
def test_an_entry_that_is_neither_host_nor_network(entry: str) -> None:
    with pytest.raises(ValueError, match="neither a host name nor a network"):
        Allowance.of([entry])


def test_the_signature_is_plain_hmac() -> None:
    expected = hmac.new(b"a-secret", b'1700000000.{"a":1}', hashlib.sha256).hexdigest()
    assert sign("a-secret", 1_700_000_000, b'{"a":1}') == f"sha256={expected}"


def call(attempts: int, age: timedelta = timedelta()) -> Callback:
    return Callback(
        delivery_id="d", job_id="j", url="http://x", payload={}, attempts=attempts, due_at=NOW, created_at=NOW - age
    )


def test_each_pause_is_longer_up_to_an_hour() -> None:
    pauses = [(retry_at(call(attempts), NOW) or NOW) - NOW for attempts in (1, 3, 5, 7, 9)]
    assert pauses == sorted(pauses)
    assert timedelta(seconds=3) < pauses[0] < timedelta(seconds=7)
    longest = [(retry_at(call(attempts), NOW) or NOW) - NOW for attempts in range(12, 2000, 97)]
    assert all(timedelta(minutes=45) <= pause <= timedelta(minutes=75) for pause in longest)
    assert len(set(longest)) == len(longest)


def test_after_a_day_it_is_given_up() -> None:
    assert retry_at(call(1, GIVE_UP_AFTER - timedelta(seconds=10)), NOW) is not None
    assert retry_at(call(1, GIVE_UP_AFTER), NOW) is None
    assert retry_at(call(20, GIVE_UP_AFTER - timedelta(minutes=30)), NOW) is None
