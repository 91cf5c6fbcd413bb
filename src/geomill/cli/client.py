"""Finds the gateway that a command calls.

The address and the key come from `--url`, `GEOMILL_URL` and `GEOMILL_KEY`, or else from the data folder, where
`geomill up` writes them. There is no option for the key, because all users of a machine see the options of a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from geomill.cli import context, folder
from geomill.errors import SettingsError, UnavailableError
from geomill.settings import Settings

if TYPE_CHECKING:
    from geomill.cli.inside import LoadedParts
    from geomill.client import Client  # imported at run time where it is used, so other commands start faster

START = "start 'geomill up', or set GEOMILL_URL and GEOMILL_KEY"


@contextmanager
def gateway() -> Iterator[Client]:
    """Open a client of the running gateway: `with gateway() as client: client.assets.page(limit=5)`."""
    from geomill.client import Client

    url, key = find(context.settings())
    with Client(url, key, tries=1) as client:
        yield client


def has_gateway() -> bool:
    """Return whether commands call a gateway: one that is named, or that runs on the data folder."""
    settings = context.settings()
    return bool(settings.client.url or folder.read_address(settings.database.data))


@contextmanager
def gateway_or_database(parts: LoadedParts | None = None, *, with_roles: bool = False) -> Iterator[Client]:
    """Open a client of the running gateway or, where there is none, of a gateway inside this process.

    The second serves operators who have the database and need no server, such as before the first `geomill up`. There,
    `with_roles` also runs an orchestrator and a worker, and `parts` are used if they are loaded already.
    """
    if has_gateway():
        with gateway() as client:
            yield client
        return
    from geomill.cli.inside import inside

    with inside(parts, with_roles=with_roles) as client:
        yield client


def find(settings: Settings) -> tuple[str, str]:
    """Return the gateway's address and the key. The key of the data folder is sent only to the gateway of that
    folder."""
    options, data = settings.client, settings.database.data
    if options.url and not options.key:
        raise SettingsError(f"no key is set for the gateway {options.url}", remedy="set GEOMILL_KEY")
    url = options.url or folder.read_address(data)
    key = options.key.get_secret_value() if options.key else _folder_key(data)
    if not url or not key:
        raise UnavailableError(f"no gateway is running on the data folder {data}", remedy=START)
    return url, key


def _folder_key(data: Path) -> str | None:
    secret = folder.read_key(data)
    return secret.reveal() if secret else None
