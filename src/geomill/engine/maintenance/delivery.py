"""Makes one HTTP call to a URL from a user, without access to the internal network (`pinning.py`).

Redirects are not followed, and the body of the response is not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx

from geomill.domain.engine.callback import Allowance
from geomill.engine.maintenance.pinning import ForbiddenAddress, NotReached, answer_of, permitted

TIMEOUT_SECONDS = 10.0


class NotDelivered(Exception):  # noqa: N818
    """The call failed and may succeed later. `status` is that of the response, if there was one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


async def post(
    url: str, body: bytes, headers: Mapping[str, str], allowed: Allowance, seconds: float = TIMEOUT_SECONDS
) -> int:
    """Make the call and return the status code, a 2xx. Raises `NotDelivered` or `ForbiddenAddress`, whose text goes
    into the job's history."""
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ForbiddenAddress(f"the URL cannot be read: {error}") from error
    if target.scheme not in ("http", "https") or not target.host:
        raise ForbiddenAddress("only http and https URLs may be called")
    try:
        async with asyncio.timeout(seconds):
            addresses = await permitted(target, allowed, "GEOMILL_CALLBACK_ALLOW")
            async with answer_of(
                "POST", target, addresses, headers, content=body, silence_seconds=TIMEOUT_SECONDS
            ) as answer:
                status = answer.status_code
    except TimeoutError as error:
        raise NotDelivered(f"no response within {seconds:g} s") from error
    except NotReached as error:
        raise NotDelivered(str(error)) from error
    if not 200 <= status < 300:
        redirected = ", and redirects are not followed" if status < 400 else ""
        raise NotDelivered(f"the status was {status}{redirected}", status)
    return status
