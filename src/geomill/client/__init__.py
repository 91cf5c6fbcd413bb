"""The client of a gateway, for Python programs: `Client`, and `AsyncClient` for asyncio.

    with Client("https://maps.example.org", key) as client:
        upload = client.upload(Path("roads.gpkg"))
        accepted = client.assets.submit(PlatformSubmission(…))
        status = client.assets.wait(accepted.request_id)

Responses are the models of `geomill.contract`, and failures are the errors of `geomill.errors`. Nothing here imports
the server. `asynchronous` is the source; `script/client` writes `synchronous` from it.
"""

from __future__ import annotations

from geomill.client.asynchronous.client import AsyncClient
from geomill.client.synchronous.client import Client

__all__ = ["AsyncClient", "Client"]
