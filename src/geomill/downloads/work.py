"""The work of an extract, as the database has it for the job that writes the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import psycopg
from psycopg.rows import dict_row
from pydantic import Field, TypeAdapter

from geomill.downloads.order import FeaturesOrder, PixelsOrder
from geomill.errors import DatabaseUnreachable, IdentityUnavailable
from geomill.identity.passwords import password_of
from geomill.sdk import DatabaseAccess, Storage, Zone
from geomill.sql import queries

_WORK: TypeAdapter[FeaturesOrder | PixelsOrder] = TypeAdapter(
    Annotated[FeaturesOrder | PixelsOrder, Field(discriminator="kind")]
)


@dataclass(frozen=True, slots=True)
class ExtractWork:
    extract_id: str
    file_name: str
    media_type: str
    work: FeaturesOrder | PixelsOrder
    most_bytes: int


def read_work(access: DatabaseAccess, storage: Storage, extract_id: str, job_id: str) -> ExtractWork | None:
    """Return the work of the job's own extract, with this process's credentials. None if the extract is gone, or is
    another job's."""
    try:
        password = password_of(access.url)
        with psycopg.connect(
            access.url, password=password, connect_timeout=10, application_name="geomill extracts"
        ) as conn:
            cursor = conn.cursor(row_factory=dict_row)
            row = cursor.execute(queries("extracts").work, {"extract_id": extract_id, "job_id": job_id}).fetchone()
    except (psycopg.OperationalError, IdentityUnavailable) as error:
        raise DatabaseUnreachable("the database did not complete the request", remedy="try again") from error
    return ExtractWork(**{**row, "work": _with_credentials(row["work"], access, storage)}) if row else None


def _with_credentials(work: dict[str, Any], access: DatabaseAccess, storage: Storage) -> FeaturesOrder | PixelsOrder:
    """Return the order with what this process may use. A token is asked for again, since the job may have waited."""
    own = {
        "url": access.url,
        "password": password_of(access.url),
        "options": dict(storage.gdal_options(Zone.SILVER)),
    }
    return _WORK.validate_python({**work, **own})
