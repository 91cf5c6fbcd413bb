"""The settings that a gateway runs with, for operators, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from geomill.domain.access.confidential import masked_url
from geomill.settings.access import AccessSettings
from geomill.settings.concern import PREFIX, Concern
from geomill.settings.engine import (
    CallbackSettings,
    QueueSettings,
    WorkflowSettings,
)
from geomill.settings.gateway import ConnectionSettings, ConsoleSettings, GatewaySettings, ServingSettings
from geomill.settings.logs import LogSettings
from geomill.settings.platform import InspectionSettings, PlatformSettings
from geomill.settings.reading import SECRET, Settings
from geomill.settings.storage import ExtractSettings, RetentionSettings, StorageSettings, UploadSettings

MASK = "…"

GATEWAY_CONCERNS: tuple[type[Concern], ...] = (
    WorkflowSettings, QueueSettings, PlatformSettings, InspectionSettings, GatewaySettings, ServingSettings,
    AccessSettings, ConsoleSettings, ConnectionSettings, CallbackSettings, LogSettings, StorageSettings,
    UploadSettings, ExtractSettings, RetentionSettings,
)  # fmt: skip
"""The settings that a gateway reads, beside those of the databases."""
GATEWAY_WITHHELD = ("GEOMILL_CALLBACK_SECRET", "GEOMILL_CALLBACK_ALLOW")
"""Variables of those classes that a gateway does not read."""


@dataclass(frozen=True, slots=True)
class SettingInEffect:
    """A setting as a process has it. Secrets in `value` and `default` are masked."""

    name: str
    value: Any
    default: Any
    is_set: bool
    secret: bool
    description: str


def gateway_settings(settings: Settings, **options: Any) -> list[SettingInEffect]:
    """Return the settings of a gateway, ordered by name. `options` of its command line override fields."""
    concerns = [
        settings.database,
        *(concern for concern in vars(settings).values() if isinstance(concern, GATEWAY_CONCERNS)),
    ]
    effective = [
        _in_effect(concern, name, field, options)
        for concern in concerns
        for name, field in type(concern).model_fields.items()
    ]
    return sorted((setting for setting in effective if setting.name not in GATEWAY_WITHHELD), key=lambda s: s.name)


def _in_effect(concern: Concern, name: str, field: FieldInfo, options: Mapping[str, Any]) -> SettingInEffect:
    alias = field.validation_alias
    variable = str(alias.choices[0]) if isinstance(alias, AliasChoices) else PREFIX + name.upper()
    value = options.get(name, getattr(concern, name))
    default = field.get_default(call_default_factory=True, validated_data={})
    return SettingInEffect(
        name=variable,
        value=_masked(value),
        default=_masked(default),
        is_set=name in concern.model_fields_set or (name in options and value != default),
        secret=isinstance(value, SecretStr) or name in SECRET or "SecretStr" in str(field.annotation),
        description=field.description or "",
    )


def _masked(value: Any) -> Any:
    """Return a setting as JSON, without the secrets in it."""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, list | tuple):
        return [_masked(entry) for entry in value]
    if isinstance(value, str) and "://" in value:
        return masked_url(value)
    return str(value) if isinstance(value, Path) else value
