"""What each process of `geomill up` is told: the settings that it reads, and no others.

Variables that are no settings of ours, such as PATH, pass to all. The external server is for everybody: it is not told
where anything inside is, and so gets neither the data folder nor libpq's own variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_settings import BaseSettings

from geomill.settings import (
    PREFIX,
    AccessSettings,
    CallbackSettings,
    ConnectionSettings,
    EngineSettings,
    GatewaySettings,
    LogSettings,
    PlatformSettings,
    QueueSettings,
    RetentionSettings,
    ServingSettings,
    StorageSettings,
    WorkerSettings,
    WorkflowSettings,
    variables,
)

NEEDS: Mapping[str, tuple[type[BaseSettings], ...]] = {
    "orchestrator": (
        WorkflowSettings, QueueSettings, EngineSettings, RetentionSettings, CallbackSettings, LogSettings,
        StorageSettings,
    ),
    "worker": (WorkflowSettings, QueueSettings, EngineSettings, WorkerSettings, LogSettings, StorageSettings),
    "gateway": (
        WorkflowSettings, QueueSettings, PlatformSettings, GatewaySettings, ServingSettings, AccessSettings,
        ConnectionSettings, CallbackSettings, LogSettings, StorageSettings,
    ),
    "external": (AccessSettings, ConnectionSettings, LogSettings, StorageSettings),
}  # fmt: skip
"""The concerns of each kind of process. Where the databases are is told beside them."""

WITHHELD: Mapping[str, tuple[str, ...]] = {
    "gateway": ("GEOMILL_CALLBACK_SECRET", "GEOMILL_CALLBACK_ALLOW"),
    "external": ("GEOMILL_BRONZE", "GEOMILL_SILVER"),
}
"""Of these concerns, what a process does not read."""

LIBPQ = (
    "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Databases:
    """As whom and where each kind of process connects. `loader` and `reader` are absent where there is one role."""

    engine: str
    gateway: str
    loader: str | None = None
    reader: str | None = None
    exporter: str | None = None
    external: str | None = None
    hider: str | None = None

    def of(self, kind: str) -> dict[str, str]:
        told: dict[str, dict[str, str | None]] = {
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
        return {name: url for name, url in told[kind].items() if url}


def environment(
    kind: str, inherited: Mapping[str, str], databases: Databases, told: Mapping[str, str]
) -> dict[str, str]:
    """`told` are settings of the supervisor, from its options too; a process gets those of them that it reads."""
    ours = variables()
    needed = set(variables(NEEDS[kind])) - set(WITHHELD.get(kind, ()))
    needed |= set() if kind == "external" else {"GEOMILL_DATA"}
    foreign = {
        name: value
        for name, value in inherited.items()
        if name.upper() not in ours and not name.startswith(PREFIX) and not (kind == "external" and name in LIBPQ)
    }
    settings = {name: value for name, value in {**inherited, **told}.items() if name.upper() in needed}
    return {**foreign, **settings, **databases.of(kind), "PYTHONUNBUFFERED": "1"}
