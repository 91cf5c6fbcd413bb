"""Reads all settings of a process from its environment, and refuses what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import AliasChoices, ValidationError
from pydantic_settings import BaseSettings

from geomill.errors import Problem, SettingsError, nearest
from geomill.settings.access import AccessSettings, ClientSettings
from geomill.settings.concern import PREFIX, Concern
from geomill.settings.database import DatabaseSettings
from geomill.settings.engine import (
    BrokerSettings,
    CallbackSettings,
    EngineSettings,
    QueueSettings,
    WorkerSettings,
    WorkflowSettings,
)
from geomill.settings.gateway import ConnectionSettings, ConsoleSettings, GatewaySettings, ServingSettings
from geomill.settings.logs import LogSettings
from geomill.settings.platform import InspectionSettings, PlatformSettings
from geomill.settings.storage import ExtractSettings, RetentionSettings, StorageSettings, UploadSettings

SECRET = (
    "database_url", "external_database_url", "loader_database_url", "reader_database_url",
    "callback_secret", "link_secret", "metrics_key", "oidc_client_secret", "key", "bronze", "silver", "external",
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
)  # fmt: skip
"""Fields that may hold a password. No message shows their values."""


class Settings:
    """All settings of one process."""

    CONCERNS: ClassVar[tuple[type[Concern], ...]] = (
        DatabaseSettings,
        WorkflowSettings,
        QueueSettings,
        BrokerSettings,
        EngineSettings,
        RetentionSettings,
        UploadSettings,
        ExtractSettings,
        WorkerSettings,
        PlatformSettings,
        InspectionSettings,
        GatewaySettings,
        ConnectionSettings,
        ServingSettings,
        AccessSettings,
        ConsoleSettings,
        ClientSettings,
        LogSettings,
        CallbackSettings,
        StorageSettings,
    )

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        data: Path | None = None,
        workflows: Sequence[Path] = (),
        url: str | None = None,
    ) -> None:
        """Read all settings. `data`, `workflows` and `url` come from the command line and override the environment."""
        _refuse_unknown(environ)
        self.database = _read(DatabaseSettings, **({"data": data} if data else {}))
        self.workflow = _read(WorkflowSettings, **({"workflows": list(workflows)} if workflows else {}))
        self.queue = _read(QueueSettings)
        self.broker = _broker()
        self.engine = _read(EngineSettings)
        self.retention = _read(RetentionSettings)
        self.upload = _read(UploadSettings)
        self.extract = _read(ExtractSettings)
        self.worker = _read(WorkerSettings)
        self.callback = _read(CallbackSettings)
        self.platform = _platform()
        self.inspection = _read(InspectionSettings)
        self.gateway = _read(GatewaySettings)
        self.connection = _read(ConnectionSettings)
        self.serving = _read(ServingSettings)
        self.access = _access()
        self.console = _read(ConsoleSettings)
        self.client = _read(ClientSettings, **({"url": url} if url else {}))
        self.log = _read(LogSettings)
        self.storage = _read(StorageSettings)
        self.database = self.database.with_tokens(self.storage.azure_client_id or "")


def variables(concerns: Sequence[type[BaseSettings]] | None = None) -> dict[str, str]:
    """Return the environment variables of the given settings classes, or of all, with their descriptions."""
    descriptions: dict[str, str] = {}
    for concern in Settings.CONCERNS if concerns is None else concerns:
        for name, field in concern.model_fields.items():
            alias = field.validation_alias
            names = [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else [PREFIX + name]
            descriptions.update({variable.upper(): field.description or "" for variable in names})
    return descriptions


AnyConcern = TypeVar("AnyConcern", bound=Concern)


def _read(concern: type[AnyConcern], **overrides: Any) -> AnyConcern:
    try:
        return concern(**overrides)
    except ValidationError as error:
        problems = [Problem(_variable(e), e["msg"], _shown(e)) for e in error.errors()]
        raise SettingsError(
            f"a setting is invalid: {problems[0]}", problems=problems
        ) from None  # the cause shows passwords


def _broker() -> BrokerSettings:
    broker = _read(BrokerSettings)
    if broker.broker == "servicebus" and not (broker.service_bus_connection_string or broker.service_bus_namespace):
        raise SettingsError(
            "GEOMILL_BROKER is servicebus, but no namespace is named",
            remedy="set SERVICE_BUS_NAMESPACE, or SERVICE_BUS_CONNECTION_STRING for development",
        )
    return broker


def _access() -> AccessSettings:
    access = _read(AccessSettings)
    if access.oidc_issuer and not access.oidc_audience:
        raise SettingsError(
            "GEOMILL_OIDC_ISSUER is set without GEOMILL_OIDC_AUDIENCE: tokens for others would be accepted",
            remedy="set GEOMILL_OIDC_AUDIENCE to the `aud` that the issuer writes for this gateway",
        )
    return access


def _platform() -> PlatformSettings:
    platform = _read(PlatformSettings)
    if platform.exporter == "data_factory" and not platform.factory:
        raise SettingsError(
            "GEOMILL_EXPORTER is data_factory, and GEOMILL_DATA_FACTORY is not set",
            remedy="set GEOMILL_DATA_FACTORY to the resource id of the factory",
        )
    return platform


def _variable(error: Any) -> str:
    name = str(error["loc"][0]).upper()
    return name if name in variables() else PREFIX + name


def _shown(error: Any) -> str:
    """Return a hint with the refused value, unless it may hold a password."""
    return "" if error["loc"][0] in SECRET else f"got {str(error['input'])[:80]!r}"


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    valid = variables()
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in valid:
            raise SettingsError(f"the environment variable {name} is not a setting", remedy=nearest(name, valid))
