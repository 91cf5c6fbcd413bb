"""Puts the STAC API together from stac-fastapi-pgstac and our rule of who sees what."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI

from geomill.storage import NO_STORAGE, Storage


def create_stac_app(
    *,
    database_url: str,
    zone: Literal["internal", "external"] = "internal",
    storage: Storage = NO_STORAGE,
    connections: int = 4,
) -> FastAPI:
    """`database_url`: of the zone's own database. `connections`: at most so many, opened by the lifespan."""
    raise NotImplementedError
