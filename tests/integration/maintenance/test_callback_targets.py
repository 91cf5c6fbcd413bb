"""Where calls at the end of jobs go, and where they never do."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.engine.callback import Allowance, CallbackStatus
from geomill.engine.maintenance import pinning
from geomill.errors import InputError
from tests.integration.engine.conftest import MakePlatform, make_platform
from tests.integration.maintenance.conftest import JobDatabase
from tests.integration.maintenance.receiver import MakeCaller, Receiver, call, make_caller, of_job, receiver

__all__ = ["make_caller", "make_platform", "receiver"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0", "169.254.169.254", "10.0.0.1"])
async def test_an_address_of_the_inside_is_refused(db: JobDatabase, make_caller: MakeCaller, host: str) -> None:
    job = await db.ended_job(f"http://{host}:1/")
    await call(make_caller(allowed=Allowance()))
    row = await of_job(db, job.job_id)
    assert (row.status, row.attempts) == (CallbackStatus.GIVEN_UP, 1)
    assert "neither public nor in GEOMILL_CALLBACK_ALLOW" in row.last_error


async def test_the_address_that_was_checked_is_the_one_that_is_called(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that answers with a permitted address first and with an inner one afterwards is asked only once."""
    lookups: list[str] = []

    async def resolve(host: str, port: int) -> list[Any]:
        lookups.append(host)
        return [pinning.ip_address("127.0.0.1" if len(lookups) == 1 else "127.0.0.2")]

    monkeypatch.setattr(pinning, "_resolve", resolve)
    await db.ended_job(f"http://rebind.example:{receiver.port}/x")
    await call(make_caller())
    assert lookups == ["rebind.example"]
    assert receiver.requests[0].headers["host"] == f"rebind.example:{receiver.port}"


async def test_only_the_permitted_ones_of_several_addresses_are_called(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[Any]:
        return [pinning.ip_address(text) for text in ("127.0.0.3", "127.0.0.1")]

    monkeypatch.setattr(pinning, "_resolve", resolve)
    job = await db.ended_job(f"http://several.example:{receiver.port}/x")
    await call(make_caller())
    assert (await of_job(db, job.job_id)).status is CallbackStatus.DELIVERED


async def test_a_redirect_is_not_followed(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    receiver.statuses = [307]
    job = await db.ended_job(receiver.url)
    await call(make_caller())
    assert [request.path for request in receiver.requests] == ["/hook?key=1"]
    assert (await of_job(db, job.job_id)).last_error == "the status was 307, and redirects are not followed"


async def test_what_is_no_url_is_refused_at_the_door(make_platform: MakePlatform) -> None:
    platform = make_platform()
    with pytest.raises(InputError, match="must begin with http"):
        await platform.submit("hello_world", callback_url="file:///etc/passwd")
    assert await platform.rows("SELECT FROM dagapp.dag_queue") == []
