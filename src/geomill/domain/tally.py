"""Counts of what all processes have done since the database was made: the counters and histograms of /metrics."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Key

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Seconds: from a step of milliseconds to a tile job."""
SUM, COUNT = -1.0, 0.0
"""Instead of a bucket: the sum of what was observed, and a plain counter."""


class Tally(Entity):
    """A count, or one bucket of a histogram. Processes add to it every few seconds."""

    __sql_table__: ClassVar = "dag_tallies"
    __sql_primary_key__: ClassVar = ("name", "bucket")
    __sql_storage__: ClassVar = {"fillfactor": "50"}

    name: Key
    bucket: float = Field(description="Upper bound in seconds; 0 of a counter, -1 of a histogram's sum")
    value: Annotated[float, Field(ge=0)] = 0.0
