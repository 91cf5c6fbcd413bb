"""The base of all classes of settings: the prefix of the variables, and lists separated by commas."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "GEOMILL_"


class Concern(BaseSettings):
    """A class of settings, which is frozen and reads variables with the prefix."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", case_sensitive=False)


def split_commas(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value
