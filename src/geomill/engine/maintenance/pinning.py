"""Requests to URLs from users, without access to the internal network.

The host is resolved first and every address is checked. The connection is made to the checked address itself, so a name
that resolves differently the second time gains nothing. The certificate is still verified against the name. Proxies
from the environment are not used, and redirects are not followed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from ipaddress import ip_address

import httpx

from geomill.domain.engine.callback import Address, Allowance

MOST_ADDRESSES = 4


class ForbiddenAddress(Exception):  # noqa: N818
    """The address may not be called, so the call will never succeed."""


class NotReached(Exception):  # noqa: N818
    """The host did not answer. It may later."""


async def permitted(target: httpx.URL, allowed: Allowance, setting: str) -> list[Address]:
    """Return the addresses of a URL that may be called. `setting` is the variable that allows more."""
    host = target.raw_host.decode("ascii")
    addresses = await _resolve(host, target.port or (443 if target.scheme == "https" else 80))
    usable = [address for address in addresses if allowed.permits(host, address)]
    if not usable:
        shown = ", ".join(map(str, addresses))
        raise ForbiddenAddress(f"'{host}' has the address {shown}, which is neither public nor in {setting}")
    return usable[:MOST_ADDRESSES]


async def _resolve(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        records = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotReached(f"the host '{host}' cannot be resolved: {error}") from error
    return list(dict.fromkeys(ip_address(str(address[0]).partition("%")[0]) for *_, address in records))


@asynccontextmanager
async def answer_of(
    method: str,
    target: httpx.URL,
    addresses: list[Address],
    headers: Mapping[str, str],
    *,
    silence_seconds: float,
    content: bytes | None = None,
) -> AsyncIterator[httpx.Response]:
    """Call the first address that accepts a connection, and yield its answer, whose body is not read yet. The next
    address is tried only if the connection fails. Raises `NotReached`."""
    reason = "no address"
    async with httpx.AsyncHTTPTransport(verify=_certificates(), trust_env=False) as transport:
        for address in addresses:
            request = _pinned(method, target, address, headers, silence_seconds, content)
            try:
                answer = await transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                reason = f"no connection to {address}: {text_of(error)}"
                continue
            except httpx.HTTPError as error:
                raise NotReached(text_of(error)) from error
            try:
                yield answer
            finally:
                await answer.aclose()
            return
    raise NotReached(reason)


def _pinned(
    method: str,
    target: httpx.URL,
    address: Address,
    headers: Mapping[str, str],
    silence_seconds: float,
    content: bytes | None,
) -> httpx.Request:
    return httpx.Request(
        method,
        target.copy_with(host=str(address), fragment=None),
        content=content,
        headers={**headers, "Host": target.netloc.decode("ascii")},
        extensions={
            "sni_hostname": target.raw_host.decode("ascii"),
            "timeout": httpx.Timeout(silence_seconds).as_dict(),
        },
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Load the certificates once: it takes as long as a hundred calls."""
    return httpx.create_ssl_context()


def text_of(error: Exception) -> str:
    return str(error) or type(error).__name__
