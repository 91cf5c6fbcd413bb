"""Settings: one small class per concern, read once in `main()` or `create_app()` and passed in.

The names of all variables start with `GEOMILL_`. An unknown variable is an error, so a typo cannot silently leave a
setting unset. A few names that deployments already use keep working without the prefix.
"""

from geomill.settings.access import AccessSettings, ClientSettings
from geomill.settings.concern import PREFIX
from geomill.settings.database import DatabaseSettings
from geomill.settings.effective import GATEWAY_CONCERNS, GATEWAY_WITHHELD, SettingInEffect, gateway_settings
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
from geomill.settings.reading import Settings, variables
from geomill.settings.storage import ExtractSettings, RetentionSettings, StorageSettings, UploadSettings

__all__ = [
    "GATEWAY_CONCERNS",
    "GATEWAY_WITHHELD",
    "PREFIX",
    "AccessSettings",
    "BrokerSettings",
    "CallbackSettings",
    "ClientSettings",
    "ConnectionSettings",
    "ConsoleSettings",
    "DatabaseSettings",
    "EngineSettings",
    "ExtractSettings",
    "GatewaySettings",
    "InspectionSettings",
    "LogSettings",
    "PlatformSettings",
    "QueueSettings",
    "RetentionSettings",
    "ServingSettings",
    "SettingInEffect",
    "Settings",
    "StorageSettings",
    "UploadSettings",
    "WorkerSettings",
    "WorkflowSettings",
    "gateway_settings",
    "variables",
]
