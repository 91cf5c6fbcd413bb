from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import AwareDatetime, BaseModel, Field, NaiveDatetime, StringConstraints, create_model

from geomill.domain.entity import BigInt, Identity, Json, Key, Name, Now, SmallInt, SqlDefault, SqlType
from geomill.sql.column_types import snake
from geomill.store.columns import column
from geomill.store.ddl import column_definition
from geomill.store.spec import Column


class MapColour(StrEnum):
    RED = "red"
    ODD = "o'dd"


class Nested(BaseModel):
    x: int


def column_of(annotation: Any, default: Any = ...) -> Column:
    field = create_model("Sample", field=(annotation, default)).model_fields["field"]
    return column("field", field, "lab")


CASES = [
    (str, ..., "text NOT NULL"),
    (Key, ..., "varchar(64) NOT NULL"),
    (Name | None, None, "varchar(64)"),
    (None | Name, None, "varchar(64)"),
    (Annotated[str, Field(max_length=512)] | None, None, "varchar(512)"),
    (Annotated[str | None, Field(max_length=512)], None, "varchar(512)"),
    (Annotated[str, StringConstraints(max_length=7)], ..., "varchar(7) NOT NULL"),
    (str, Field("UTC", max_length=9), "varchar(9) DEFAULT 'UTC' NOT NULL"),
    (str, "it's", "text DEFAULT 'it''s' NOT NULL"),
    (str, "a\\b", "text DEFAULT E'a\\\\b' NOT NULL"),
    (int, ..., "integer NOT NULL"),
    (int, -1, "integer DEFAULT -1 NOT NULL"),
    (Annotated[int, Field(ge=1)], ..., "integer NOT NULL"),
    (Annotated[SmallInt, Field(ge=0, le=10)], 0, "smallint DEFAULT 0 NOT NULL"),
    (BigInt | None, None, "bigint"),
    (Identity, ..., "bigint GENERATED ALWAYS AS IDENTITY NOT NULL"),
    (float, 0.5, "double precision DEFAULT 0.5 NOT NULL"),
    (Annotated[float, Field(ge=0, le=1)] | None, None, "double precision"),
    (bool, False, "boolean DEFAULT false NOT NULL"),
    (bool, True, "boolean DEFAULT true NOT NULL"),
    (AwareDatetime | None, None, "timestamptz"),
    (Now, ..., "timestamptz DEFAULT now() NOT NULL"),
    (Now | None, None, "timestamptz DEFAULT now()"),
    (date, date(2024, 2, 29), "date DEFAULT '2024-02-29' NOT NULL"),
    (UUID, ..., "uuid NOT NULL"),
    (Annotated[UUID, SqlDefault("gen_random_uuid()")], ..., "uuid DEFAULT gen_random_uuid() NOT NULL"),
    (Decimal, Decimal("1.50"), "numeric DEFAULT 1.50 NOT NULL"),
    (bytes | None, None, "bytea"),
    (Json, Field(default_factory=dict), "jsonb DEFAULT '{}'::jsonb NOT NULL"),
    (Json | None, None, "jsonb"),
    (list[str], Field(default_factory=list), "jsonb DEFAULT '[]'::jsonb NOT NULL"),
    (list[str], ["a"], "jsonb DEFAULT '[\"a\"]'::jsonb NOT NULL"),
    (Any | None, None, "jsonb"),
    (Any, ..., "jsonb NOT NULL"),
    (Nested, ..., "jsonb NOT NULL"),
    (MapColour, MapColour.RED, "lab.map_colour DEFAULT 'red' NOT NULL"),
    (MapColour, MapColour.ODD, "lab.map_colour DEFAULT 'o''dd' NOT NULL"),
    (MapColour | None, None, "lab.map_colour"),
    (Annotated[str, SqlType("geometry(Point, 4326)")] | None, None, "geometry(Point, 4326)"),
    (str, Field(default_factory=lambda: "made by Python"), "text NOT NULL"),
]


@pytest.mark.parametrize(("annotation", "default", "definition"), CASES)
def test_a_field_becomes_a_column(annotation, default, definition):
    assert column_definition(column_of(annotation, default)) == f"field {definition}"


def test_the_description_becomes_the_comment():
    assert column_of(int, Field(description="How many")).comment == "How many"


@pytest.mark.parametrize("annotation", [set[int], int | str, NaiveDatetime, complex])
def test_a_type_without_a_column_is_refused_by_name(annotation):
    with pytest.raises(TypeError, match=r"field 'field'.*SqlType"):
        column_of(annotation)


def test_a_default_without_sql_is_refused_by_name():
    with pytest.raises(TypeError, match="field 'field' has the default b'x'"):
        column_of(bytes, b"x")


@pytest.mark.parametrize(
    ("name", "snaked"), [("JobStatus", "job_status"), ("CatchUp", "catch_up"), ("HTTPVerb2Use", "http_verb2_use")]
)
def test_snake(name, snaked):
    assert snake(name) == snaked
