"""Extracts in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from geomill.domain.access.visibility import Sight
from geomill.domain.assets.extract import Extract, NewExtract
from geomill.domain.jsonvalue import to_json
from geomill.domain.states import JobStatus
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class ExtractFigures:
    """The figures that count against the limits: the caller's extracts, and the bytes of all."""

    extracts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OrderedExtract:
    """An extract that is there, with its job and the facts that say who may see it."""

    extract: Extract
    platform_id: str
    public: bool
    newest: bool
    status: JobStatus | None
    """The status of its job; None if no orchestrator has claimed it yet."""
    result: dict[str, Any] | None
    error: str | None

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        return cls(
            Extract.from_row({name: row[name] for name in Extract.model_fields}),
            row["platform_id"],
            row["public"],
            row["newest"],
            JobStatus(row["status"]) if row["status"] else None,
            row["result"],
            row["error"],
        )

    def visible_to(self, sight: Sight) -> bool:
        """Whether the caller may see the extract: as the files of its revision. A signed link opens the newest one."""
        extract = self.extract
        if self.public or sight.covers(self.platform_id):
            return True
        return self.newest and sight.covers(self.platform_id, extract.asset_id)


async def serialise(conn: Connection) -> None:
    """Let nobody else order an extract until the transaction ends."""
    await conn.execute(queries("extracts").serialise)


async def figures(conn: Connection, ordered_by: str) -> ExtractFigures:
    row = await (await conn.execute(queries("extracts").figures, {"ordered_by": ordered_by})).fetchone()
    assert row is not None
    return ExtractFigures(**row)


async def same(conn: Connection, extract: NewExtract) -> str | None:
    """Return the id of the same extract that the caller has ordered before, or None."""
    row = await (await conn.execute(queries("extracts").same, _parameters(extract))).fetchone()
    return str(row["extract_id"]) if row else None


async def create(conn: Connection, extract: NewExtract, keep_seconds: float) -> None:
    await conn.execute(queries("extracts").create, {**_parameters(extract), "keep_seconds": keep_seconds})


async def get(conn: Connection, asset_id: str, extract_id: str) -> OrderedExtract | None:
    """Return an extract, or None if there is none, or its time is over, or its revision is gone."""
    parameters = {"asset_id": asset_id, "extract_id": extract_id}
    row = await (await conn.execute(queries("extracts").get, parameters)).fetchone()
    return OrderedExtract.from_row(row) if row else None


async def take_due(conn: Connection, failed_seconds: float, limit: int) -> list[Extract]:
    """Take extracts whose files are deleted next. From now on nobody gets them."""
    parameters = {"failed_seconds": failed_seconds, "limit": limit}
    rows = await (await conn.execute(queries("extracts").take_due, parameters)).fetchall()
    return [Extract.from_row(row) for row in rows]


async def remove(conn: Connection, extract_ids: list[str]) -> None:
    """Delete the rows, whose files are gone."""
    await conn.execute(queries("extracts").remove, {"extract_ids": extract_ids})


def _parameters(extract: NewExtract) -> dict[str, Any]:
    return {**extract.model_dump(), "work": to_json(extract.work)}
