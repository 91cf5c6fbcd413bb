"""The databases, and how processes sign in to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from platformdirs import user_data_path
from pydantic import Field, field_validator

from geomill.domain.database_identity import client_of, may_carry_token, with_identity
from geomill.errors import SettingsError
from geomill.settings.concern import PREFIX, Concern

DATABASE_URLS = ("database_url", "external_database_url", "loader_database_url", "reader_database_url")


class DatabaseSettings(Concern):
    """The databases. Without `database_url`, geomill runs a private cluster in the folder `data`."""

    database_auth: Annotated[
        Literal["password", "azure"],
        Field(description="password: as in the URLs; azure: URLs without a password use a token of a managed identity"),
    ] = "password"
    database_url: Annotated[str | None, Field(description="postgresql://… of an existing server")] = None
    external_database_url: Annotated[
        str | None,
        Field(description="postgresql://… of the external zone's database"),
    ] = None
    loader_database_url: Annotated[
        str | None,
        Field(description="postgresql://… for task processes that load features; default: the worker's own"),
    ] = None
    reader_database_url: Annotated[
        str | None,
        Field(description="postgresql://… for the serving part of a gateway; default: the gateway's own"),
    ] = None
    data: Annotated[Path, Field(description="Folder for the private cluster and all local data")] = Field(
        default_factory=lambda: user_data_path("geomill", appauthor=False)
    )

    @field_validator(*DATABASE_URLS)
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must start with postgresql://")
        return value

    def with_tokens(self, client_id: str) -> Self:
        """Return the same settings, in which the URLs without a password use a token."""
        urls = {name: url for name in DATABASE_URLS if (url := getattr(self, name))}
        if self.database_auth == "azure":
            urls = {name: with_identity(url, client_id) for name, url in urls.items()}
        for name, url in urls.items():
            if client_of(url) is not None and not may_carry_token(url):
                raise SettingsError(
                    f"{PREFIX}{name.upper()} may send a token without encryption",
                    remedy="add sslmode=verify-full or sslmode=require to it, or set a password",
                )
        return self.model_copy(update=urls)
