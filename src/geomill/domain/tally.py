"""The counters and histograms of /metrics, summed over all processes since the database was created."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Key

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Upper bounds in seconds, from a task of milliseconds to a tile job."""
SUM, COUNT = -1.0, 0.0
"""Values of `bucket` for the sum of a histogram's observations and for a plain counter."""


class Tally(Entity):
    """A counter or one bucket of a histogram. Processes add to it every few seconds."""

    __sql_table__: ClassVar = "dag_tallies"
    __sql_primary_key__: ClassVar = ("name", "bucket")
    __sql_storage__: ClassVar = {"fillfactor": "50"}

    name: Key
    bucket: float = Field(description="Upper bound in seconds; 0 for a counter, -1 for a histogram's sum")
    value: Annotated[float, Field(ge=0)] = 0.0
