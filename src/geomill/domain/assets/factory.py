"""The pipeline of Azure Data Factory that copies public files. Only the operator's settings name it."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from geomill.domain.addresses import is_loopback

PUBLIC_CLOUD = "https://management.azure.com"
CLOUDS = (PUBLIC_CLOUD, "https://management.usgovcloudapi.net", "https://management.chinacloudapi.cn")
"""The only hosts that are sent a token for Azure's management. It could change everything that the identity may."""
FACTORY = re.compile(
    r"/subscriptions/[0-9a-fA-F-]{36}/resourceGroups/[\w.()-]{1,90}"
    r"/providers/Microsoft\.DataFactory/factories/[A-Za-z0-9-]{3,63}"
)
PIPELINE = r"^[A-Za-z0-9_][^<>*#.%&:\\+?/]{0,139}$"


class FactoryPlace(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    factory: str
    """The resource id of the factory."""
    pipeline: Annotated[str, Field(pattern=PIPELINE)]
    url: str = PUBLIC_CLOUD

    @field_validator("factory")
    @classmethod
    def _resource(cls, value: str) -> str:
        return check_factory(value)

    @field_validator("url")
    @classmethod
    def _cloud(cls, value: str) -> str:
        return check_cloud(value)


def check_factory(value: str) -> str:
    if not FACTORY.fullmatch(value):
        raise ValueError(
            "must be the resource id of a factory: "
            "/subscriptions/…/resourceGroups/…/providers/Microsoft.DataFactory/factories/…"
        )
    return value


def check_cloud(value: str) -> str:
    parts = urlsplit(value)
    here = parts.scheme == "http" and is_loopback(parts.hostname or "") and not parts.path
    if value not in CLOUDS and not here:
        raise ValueError(f"must be one of {', '.join(CLOUDS)}")
    return value
