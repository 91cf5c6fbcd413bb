"""One HTTP call to an address from outside, made so that it leads nowhere inside.

The host is looked up first, every address is checked, and the connection is made to the very address that was checked,
so that a name which answers differently the second time gains nothing. The certificate is still checked against the
name. Redirects are not followed, proxies of the environment are not used, and the answer is not read.
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
    """May work another time."""


class ForbiddenAddress(Exception):  # noqa: N818
    """Never will: the address is not one that may be called."""


async def post(
    url: str, body: bytes, headers: Mapping[str, str], allowed: Allowance, seconds: float = TIMEOUT_SECONDS
) -> int:
    """The status code, of the 200s. Raises `NotDelivered` or `Forbidden`, whose text is for the job's history."""
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ForbiddenAddress(f"the URL cannot be read: {error}") from error
    if target.scheme not in ("http", "https") or not target.host:
        raise ForbiddenAddress("only http and https are called")
    try:
        async with asyncio.timeout(seconds):
            status = await _post_to_first(target, body, headers, await _permitted(target, allowed))
    except TimeoutError as error:
        raise NotDelivered(f"no answer within {seconds:g} s") from error
    if not 200 <= status < 300:
        raise NotDelivered(f"the answer was {status}" + (", and redirects are not followed" if status < 400 else ""))
    return status


async def _permitted(target: httpx.URL, allowed: Allowance) -> list[Address]:
    host = target.raw_host.decode("ascii")
    addresses = await _resolve(host, target.port or (443 if target.scheme == "https" else 80))
    permitted = [address for address in addresses if allowed.permits(host, address)]
    if not permitted:
        shown = ", ".join(map(str, addresses))
        raise ForbiddenAddress(f"'{host}' is {shown}, which is not a public address and not in GEOMILL_CALLBACK_ALLOW")
    return permitted[:MOST_ADDRESSES]


async def _resolve(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        records = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotDelivered(f"the host '{host}' cannot be found: {error}") from error
    return list(dict.fromkeys(ip_address(str(address[0]).partition("%")[0]) for *_, address in records))


async def _post_to_first(target: httpx.URL, body: bytes, headers: Mapping[str, str], addresses: list[Address]) -> int:
    """The next address is tried only if no connection came about."""
    reason = "no address"
    for address in addresses:
        try:
            return await _post_to(target, address, body, headers)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            reason = f"no connection to {address}: {_said(error)}"
        except httpx.HTTPError as error:
            raise NotDelivered(_said(error)) from error
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
    """Read once: it takes as long as a hundred calls."""
    return httpx.create_ssl_context()


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
