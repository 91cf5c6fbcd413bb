"""The format and the level of logs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from geomill.settings.concern import Concern
from geomill.telemetry.logging import LogFormat, LogLevel


class LogSettings(Concern):
    """The format and the level of logs."""

    log_format: Annotated[LogFormat, Field(description="json, text, or auto: text on a terminal")] = "auto"
    log_level: Annotated[LogLevel, Field(description="debug, info, warning or error")] = "info"
