"""Makes one HTTP call to a URL from a user, without access to the internal network.

The host is resolved first and every address is checked. The connection is made to the checked address itself, so a name
that resolves differently the second time gains nothing. The certificate is still verified against the name. Redirects
are not followed, proxies from the environment are not used, and the body of the response is not read.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address

import httpx

from geomill.domain.engine.callback import Address, Allowance

TIMEOUT_SECONDS = 10.0
MOST_ADDRESSES = 4


class NotDelivered(Exception):  # noqa: N818
    """The call failed and may succeed later. `status` is that of the response, if there was one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ForbiddenAddress(Exception):  # noqa: N818
    """The address may not be called, so the call will never succeed."""


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
            status = await _post_to_first(target, body, headers, await _permitted(target, allowed))
    except TimeoutError as error:
        raise NotDelivered(f"no response within {seconds:g} s") from error
    if not 200 <= status < 300:
        redirected = ", and redirects are not followed" if status < 400 else ""
        raise NotDelivered(f"the status was {status}{redirected}", status)
    return status


async def _permitted(target: httpx.URL, allowed: Allowance) -> list[Address]:
    host = target.raw_host.decode("ascii")
    addresses = await _resolve(host, target.port or (443 if target.scheme == "https" else 80))
    permitted = [address for address in addresses if allowed.permits(host, address)]
    if not permitted:
        shown = ", ".join(map(str, addresses))
        raise ForbiddenAddress(
            f"'{host}' has the address {shown}, which is neither public nor in GEOMILL_CALLBACK_ALLOW"
        )
    return permitted[:MOST_ADDRESSES]


async def _resolve(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        records = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotDelivered(f"the host '{host}' cannot be resolved: {error}") from error
    return list(dict.fromkeys(ip_address(str(address[0]).partition("%")[0]) for *_, address in records))


async def _post_to_first(target: httpx.URL, body: bytes, headers: Mapping[str, str], addresses: list[Address]) -> int:
    """Call the first address that accepts a connection. The next is tried only if the connection fails."""
    reason = "no address"
    for address in addresses:
        try:
            return await _post_to(target, address, body, headers)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            reason = f"no connection to {address}: {_text(error)}"
        except httpx.HTTPError as error:
            raise NotDelivered(_text(error)) from error
    raise NotDelivered(reason)


async def _post_to(target: httpx.URL, address: Address, body: bytes, headers: Mapping[str, str]) -> int:
    pinned = target.copy_with(host=str(address), fragment=None)
    name = target.raw_host.decode("ascii")
    request = httpx.Request(
        "POST",
        pinned,
        content=body,
        headers={**headers, "Host": target.netloc.decode("ascii")},
        extensions={"sni_hostname": name, "timeout": httpx.Timeout(TIMEOUT_SECONDS).as_dict()},
    )
    async with httpx.AsyncHTTPTransport(verify=_certificates(), trust_env=False) as transport:
        response = await transport.handle_async_request(request)
        await response.aclose()
        return response.status_code


@cache
def _certificates() -> ssl.SSLContext:
    """Load the certificates once: it takes as long as a hundred calls."""
    return httpx.create_ssl_context()


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
