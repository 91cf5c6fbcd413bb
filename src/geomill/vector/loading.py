"""A chunk of a layer into the staging tables: read, repaired and copied in batches, all in one transaction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyogrio
from pyproj.network import set_network_enabled  # type: ignore[attr-defined]  # it is made for this

from geomill.storage.gdal import OFFLINE
from geomill.vector import tables
from geomill.vector.attributes import filled, prepare
from geomill.vector.columns import GEOMETRY, ID
from geomill.vector.copying import HEADER, TRAILER, Field, rows
from geomill.vector.database import Connection
from geomill.vector.extent import Hull
from geomill.vector.facts import Chunk, Family, Format, Loaded, LoadingPlan
from geomill.vector.families import FamilyRows
from geomill.vector.geometry import LARGEST, GeometryRepairs
from geomill.vector.layers import GEOJSON_LIMIT, FeatureBatch, Layer, told
from geomill.vector.projecting import Projection
from geomill.vector.tables import Staging

MOST_ROWS = 20_000
BATCH_BYTES = 8 * 1024 * 1024
SMALLEST_BATCH = 5
_MARGIN = 64 * 1024 * 1024

Tell = Callable[[int], None]
"""Called with the rows so far; it may raise, and then nothing is loaded."""


def configure() -> None:
    """GDAL stops a batch before it takes more memory than the largest geometry that is taken, and a feature of GeoJSON,
    which as a tree of values takes much more than its text, before it takes half a gigabyte. It reads copies on this
    machine, so it sends no request to anybody."""
    set_network_enabled(active=False)
    pyogrio.set_gdal_config_options(
        {"OGR_ARROW_MEM_LIMIT": str(LARGEST + _MARGIN), GEOJSON_LIMIT: "130", "GDAL_NUM_THREADS": "1", **OFFLINE}
    )


def batch_rows(layer: Layer) -> int:
    """So many that they have about the same size, whatever the features are."""
    average = max(layer.path.stat().st_size / max(layer.rows, 1), 1)
    return int(min(max(BATCH_BYTES / average, SMALLEST_BATCH), MOST_ROWS))


@dataclass
class ChunkLoad:
    conn: Connection
    layer: Layer
    plan: LoadingPlan
    tell: Tell
    counts: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        rules = self.plan.rules
        self._staging = Staging(self.plan.staging, rules)
        self._geometry = GeometryRepairs(
            rules, self.plan.facts.crs, self.counts, plain=self.plan.facts.format is not Format.GEOPARQUET
        )
        self._hull = Hull(geographic=Projection(rules.target_crs, rules.target_crs).geographic)

    def run(self, chunk: Chunk) -> Loaded:
        begun = time.monotonic()
        with self.conn.transaction():
            if (earlier := tables.enter(self.conn, self._staging, chunk.number)) is not None:
                return Loaded.model_validate({**earlier, "resumed": True})
            done = 0
            for batch in self._batches(chunk):
                self._copy(batch)
                done += len(batch.ids)
                self.tell(done)
            outcome = Loaded(
                chunk=chunk.number,
                read=done,
                rows=dict(self.rows),
                repairs=dict(self.counts),
                filled=dict(self.filled),
                extent=self._hull.extent(),
                seconds=round(time.monotonic() - begun, 3),
            )
            tables.note(self.conn, self._staging, chunk.number, outcome.model_dump(mode="json"))
        return outcome

    def _batches(self, chunk: Chunk) -> Iterator[FeatureBatch]:
        with told(self.plan.source.file_name):
            yield from self.layer.batches(chunk, batch_rows(self.layer))

    def _copy(self, batch: FeatureBatch) -> None:
        parts = self._geometry.harden(batch.geometry, batch.ids)
        columns = self.plan.facts.columns
        attributes = [
            Field(column.type, prepare(batch.attributes.column(column.source), column.type, self.counts))
            for column in columns
        ]
        for column, values in zip(columns, attributes, strict=True):
            self.filled[column.name] += filled(values.values)
        for part in parts:
            self._copy_part(part, batch, attributes)

    def _copy_part(self, part: FamilyRows, batch: FeatureBatch, attributes: list[Field]) -> None:
        everything = len(part.rows) == len(batch.ids)
        kept = (
            attributes if everything else [Field(one.type, one.values.take(pa.array(part.rows))) for one in attributes]
        )
        ids = batch.ids if everything else batch.ids[part.rows]
        fields = [Field("bigint", pa.array(np.ascontiguousarray(ids))), *kept, Field("geometry", part.wkb)]
        names = [ID, *(column.name for column in self.plan.facts.columns), GEOMETRY]
        tables.copy_rows(self.conn, self._staging, part.family, names, (HEADER, rows(fields), TRAILER))
        self.rows[Family(part.family).value] += len(ids)
        self._hull.add(part.points)
