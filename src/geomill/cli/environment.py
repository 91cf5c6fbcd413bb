"""Builds the environment of each process of `geomill up`: the settings that it reads, and no others.

Variables that are not geomill settings, such as PATH, are passed to all. The external server is open to everybody, so
it does not learn where internal data lies: it gets neither the data folder nor libpq's variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_settings import BaseSettings

from geomill.settings import (
    GATEWAY_CONCERNS,
    GATEWAY_WITHHELD,
    PREFIX,
    AccessSettings,
    BrokerSettings,
    CallbackSettings,
    ConnectionSettings,
    EngineSettings,
    LogSettings,
    QueueSettings,
    RetentionSettings,
    StorageSettings,
    UploadSettings,
    WorkerSettings,
    WorkflowSettings,
    variables,
)

NEEDS: Mapping[str, tuple[type[BaseSettings], ...]] = {
    "orchestrator": (
        WorkflowSettings, QueueSettings, BrokerSettings, EngineSettings, RetentionSettings, CallbackSettings,
        LogSettings, StorageSettings, UploadSettings,
    ),
    "worker": (
        WorkflowSettings, QueueSettings, BrokerSettings, EngineSettings, WorkerSettings, LogSettings, StorageSettings,
    ),
    "gateway": GATEWAY_CONCERNS,
    "external": (AccessSettings, ConnectionSettings, LogSettings, StorageSettings),
}  # fmt: skip
"""The settings classes that each kind of process reads. `Databases` adds the database URLs."""

WITHHELD: Mapping[str, tuple[str, ...]] = {
    "gateway": GATEWAY_WITHHELD,
    "external": ("GEOMILL_BRONZE", "GEOMILL_SILVER"),
}
"""Variables of those classes that a kind of process does not read."""

LIBPQ = (
    "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Databases:
    """The database URL of each kind of process. `loader` and `reader` are None if all processes share one role."""

    engine: str
    gateway: str
    loader: str | None = None
    reader: str | None = None
    exporter: str | None = None
    external: str | None = None
    hider: str | None = None

    def of(self, kind: str) -> dict[str, str]:
        urls: dict[str, dict[str, str | None]] = {
            "orchestrator": {"GEOMILL_DATABASE_URL": self.engine},
            "worker": {
                "GEOMILL_DATABASE_URL": self.engine,
                "GEOMILL_LOADER_DATABASE_URL": self.loader,
                "GEOMILL_EXTERNAL_DATABASE_URL": self.exporter,
            },
            "gateway": {
                "GEOMILL_DATABASE_URL": self.gateway,
                "GEOMILL_READER_DATABASE_URL": self.reader,
                "GEOMILL_EXTERNAL_DATABASE_URL": self.hider,
            },
            "external": {"GEOMILL_EXTERNAL_DATABASE_URL": self.external},
        }
        return {name: url for name, url in urls[kind].items() if url}


def environment(
    kind: str, inherited: Mapping[str, str], databases: Databases, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a process. `overrides` are the supervisor's own settings, which include its options."""
    geomill_variables = variables()
    needed = set(variables(NEEDS[kind])) - set(WITHHELD.get(kind, ()))
    needed |= set() if kind == "external" else {"GEOMILL_DATA"}
    foreign = {
        name: value
        for name, value in inherited.items()
        if name.upper() not in geomill_variables
        and not name.startswith(PREFIX)
        and not (kind == "external" and name in LIBPQ)
    }
    settings = {name: value for name, value in {**inherited, **overrides}.items() if name.upper() in needed}
    return {**foreign, **settings, **databases.of(kind), "PYTHONUNBUFFERED": "1"}
