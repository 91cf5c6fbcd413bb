"""The environment of a child: only the variables that it needs, and network access only if its work needs it.

A task reads files from outside. If a file exploits a library, it finds no unrelated passwords in the environment, and
no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from psycopg.conninfo import conninfo_to_dict

from geomill.domain.location import Folder, parse_location
from geomill.storage import StorageRecipe
from geomill.storage.gdal import OFFLINE

if TYPE_CHECKING:  # a child process has no settings, and need not load them
    from geomill.settings import WorkerSettings

SCRATCH = "scratch"
_KEPT = frozenset((
    "CURL_CA_BUNDLE", "GDAL_DATA", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PROJ_DATA",
    "PROJ_LIB", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "TEMP", "TMP", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV",
))  # fmt: skip
_KEPT_BEGINNINGS = ("LC_", "PYTHON", "OMP_", "OPENBLAS_", "MKL_", "COV_", "COVERAGE_")
_OF_STORES = ("AWS_", "AZURE_", "IDENTITY_", "MSI_")
"""Variables with the identities of machines and containers, which the clients of remote stores read themselves."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class Surroundings:
    environ: Mapping[str, str]
    offline: bool
    """Whether the child leaves the network as soon as it starts."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The operator's settings for children."""

    variables: tuple[str, ...] = ()
    """Variables that custom handlers need."""
    network: bool = False
    """Whether custom handlers need the network."""
    scratch: Path | None = None

    @classmethod
    def of(cls, settings: WorkerSettings) -> Self:
        return cls(tuple(settings.task_environment), settings.task_network == "open", settings.scratch)


NO_WISHES = Wishes()


def surroundings(environ: Mapping[str, str], recipe: StorageRecipe, database: str, wishes: Wishes) -> Surroundings:
    remote = _is_remote(recipe)
    offline = not (remote or wishes.network or _is_over_network(database))
    variables = {
        name: value for name, value in environ.items() if _keeps(name, wishes.variables, remote or wishes.network)
    }
    if not (remote or wishes.network):
        variables |= OFFLINE
    variables |= {"PYTHONSAFEPATH": "1", "PROJ_NETWORK": "OFF"}
    if folder := scratch_folder(recipe, wishes):
        variables["TMPDIR"] = str(folder)
    return Surroundings(variables, offline)


def scratch_folder(recipe: StorageRecipe, wishes: Wishes) -> Path | None:
    """Return the folder for temporary files. None means the system's own."""
    return wishes.scratch or (Path(recipe.data) / SCRATCH if recipe.data else None)


def make_private(folder: Path) -> None:
    """Create the folder, accessible only to this user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def _keeps(name: str, listed: tuple[str, ...], network: bool) -> bool:
    if name in _KEPT or name.startswith(_KEPT_BEGINNINGS) or name in listed:
        return True
    return network and (name.startswith(_OF_STORES) or name.upper() in _PROXIES)


def _is_remote(recipe: StorageRecipe) -> bool:
    return any(not isinstance(parse_location(location), Folder) for location in recipe.zones.values())


def _is_over_network(database: str) -> bool:
    """Whether the database is reached over the network. A Unix socket needs none."""
    if not database:
        return False
    parts: dict[str, Any] = conninfo_to_dict(database)
    hosts = [unquote(host) for host in str(parts.get("host") or "").split(",")]
    return bool(parts.get("hostaddr")) or not all(host.startswith("/") for host in hosts)
