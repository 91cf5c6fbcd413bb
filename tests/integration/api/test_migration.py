"""A newer release migrates the database while a gateway works: nobody who calls it notices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal

from geomill.domain.entity import Entity
from geomill.domain.request import PlatformRequest
from geomill.domain.tables import TABLES
from tests.integration.api.desk import order

OFTEN = 8
"""Until every statement is prepared."""


def add_columns(url: str) -> None:
    with psycopg.connect(url) as conn:
        for model in TABLES:
            table = Identifier(model.__sql_schema__, model.__sql_table__)
            conn.execute(SQL("ALTER TABLE {} ADD COLUMN of_a_newer_release integer DEFAULT 7").format(table))


def widen_requests(url: str) -> None:
    """A submission comes to them in the middle of its transaction."""
    widen_columns(url, [PlatformRequest], at_least=5)


def widen_columns(url: str, models: Sequence[type[Entity]] = TABLES, at_least: int = 40) -> None:
    """As far as no trigger depends on them."""
    widened = 0
    with psycopg.connect(url, autocommit=True) as conn:
        for model in models:
            schema, name = model.__sql_schema__, model.__sql_table__
            rows = conn.execute(
                "SELECT column_name, character_maximum_length FROM information_schema.columns"
                " WHERE table_schema = %s AND table_name = %s AND character_maximum_length IS NOT NULL",
                (schema, name),
            ).fetchall()
            for column, length in rows:
                statement = SQL("ALTER TABLE {} ALTER COLUMN {} TYPE varchar({})").format(
                    Identifier(schema, name), Identifier(column), Literal(length + 10)
                )
                try:
                    conn.execute(statement)
                    widened += 1
                except psycopg.errors.FeatureNotSupported:
                    continue
    assert widened >= at_least


async def use(counter: Any, prefix: str) -> list[tuple[str, int]]:
    """What a partner, a reviewer and an operator do, with the status of each answer."""
    answers = []
    for number in range(OFTEN):
        refs = {"dataset_id": "d", "resource_id": f"{prefix}-{number}", "version_id": "v1"}
        submitted = await counter.post("submit", order(platform_refs=refs))
        answers.append(submitted)
        answers.append(await counter.post("submit", order(platform_refs=refs, overwrite=True)))
        asset_id = submitted.json().get("asset_id", "none")
        answers.append(await counter.get(f"/api/platform/status/{asset_id}"))
        answers.append(await counter.get(f"/api/assets/{asset_id}"))
        answers.append(await counter.get("/api/assets"))
        answers.append(await counter.get("/api/v1/jobs"))
        job = await counter.client.post("/api/v1/jobs", json={"workflow_id": "hello_world"})
        answers.append(job)
    return [(f"{answer.request.method} {answer.request.url.path}", answer.status_code) for answer in answers]


@pytest.mark.parametrize("migrate", [add_columns, widen_columns, widen_requests])
async def test_every_answer_is_as_before(make_counter: Any, migrate: Any) -> None:
    counter = await make_counter(pool_size=1)
    before = await use(counter, "before")
    assert {status for _, status in before} == {200, 202}
    migrate(counter.url)
    after = await use(counter, "after")
    assert [answer for answer in after if answer[1] >= 300] == []
