"""Looks into a vector file: brings it here if it is small enough, and opens its layers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyogrio
from pydantic import ValidationError

from geomill.contract.inspection import EncodingInside, Inspection, LayerInside
from geomill.datasets.source import Source
from geomill.datasets.times import times
from geomill.handlers.vector.validate import ValidateVectorParams
from geomill.inspection.findings import Findings
from geomill.inspection.layers import MOST_ROWS, LayerLook, described
from geomill.sdk import HandlerError, Storage
from geomill.vector import columnar
from geomill.vector.archives import unpacked_bytes
from geomill.vector.facts import Format, Reading
from geomill.vector.formats import DRIVERS
from geomill.vector.geopackage import feature_layers
from geomill.vector.layers import Layer, read_errors_as_refusals
from geomill.vector.loading import configure
from geomill.vector.ogr_layer import OgrLayer
from geomill.vector.parquet_layer import ParquetLayer
from geomill.vector.swapped_layer import SwappedLayer
from geomill.vector.workspace import is_archive, prepared

MOST_LAYERS = 50
MOST_COLUMNS = 200
"""The columns that are told of each layer if there are several."""
SMALL_BYTES = 16 * 1024 * 1024
"""A file of this size is read whole, whatever its format."""


@dataclass
class VectorLook:
    storage: Storage
    source: Source
    options: dict[str, Any]
    folder: Path
    copied_bytes: int
    inspection: Inspection
    findings: Findings

    def run(self) -> None:
        configure()
        params = self._params()
        reading = Reading.model_validate(params.model_dump(include=set(Reading.model_fields)))
        name = self.source.file_name
        with self.findings.collecting(), read_errors_as_refusals(name):
            original = self._original()
            if original is None:
                return
            path, file_format = prepared(original, name, self.folder, reading.layer)
            self.inspection.format = file_format.value
            self._list_layers(path, file_format, reading)
            layer = self._opened(path, file_format, reading)
            self._look(SwappedLayer(layer) if reading.swap_xy else layer, reading, params)

    def _params(self) -> ValidateVectorParams:
        fields = {name: value for name, value in self.options.items() if name in ValidateVectorParams.model_fields}
        place = {"container_name": self.source.container_name, "file_name": self.source.file_name}
        try:
            return ValidateVectorParams.model_validate({**fields, **place})
        except ValidationError as error:
            self.findings.refuse_options(error)
            wrong = {str(fault["loc"][0]) for fault in error.errors()}
            return ValidateVectorParams.model_validate(
                {**{name: value for name, value in fields.items() if name not in wrong}, **place}
            )

    def _original(self) -> Path | None:
        """Return a local path of the source, or None if it is too large to bring here."""
        place, size = self.storage.gdal_path(self.source.name), self.inspection.size_bytes
        if not place.startswith("/vsi"):
            original = Path(place)
        elif size > self.copied_bytes:
            self._leave_out(size)
            return None
        else:
            original = self.folder / "source"
            self.storage.sync.get_file(self.source.name, original)
        if is_archive(original) and (unpacked := unpacked_bytes(original)) > self.copied_bytes:
            self._leave_out(unpacked)
            return None
        return original

    def _leave_out(self, size: int) -> None:
        self.inspection.complete = False
        message = f"'{self.source.file_name}' has {size:,} bytes, too many to look inside now: the job will check it"
        self.findings.warn("not_inspected", [message])

    def _list_layers(self, path: Path, file_format: Format, reading: Reading) -> None:
        """List the layers of a file that has several, each with its columns."""
        if file_format is Format.GEOPACKAGE:
            names = feature_layers(path)
        elif file_format is Format.KML:
            names = [str(layer) for layer, kind in pyogrio.list_layers(path) if kind is not None]
        else:
            return
        if len(names) < 2 or reading.layer in names:
            return
        for layer_name in names[:MOST_LAYERS]:
            entry = LayerInside(name=layer_name, geometry_type=None, rows=None)
            with suppress(HandlerError):  # only the layer that is chosen must be readable
                if file_format is Format.GEOPACKAGE:
                    layer = self._opened(path, file_format, reading.model_copy(update={"layer": layer_name}))
                    entry = described(layer, self.source.file_name, reading)
                    entry.columns = entry.columns[:MOST_COLUMNS]
            self.inspection.layers.append(entry)

    def _opened(self, path: Path, file_format: Format, reading: Reading) -> Layer:
        name = self.source.file_name
        if file_format is Format.GEOPARQUET:
            return ParquetLayer.opened(path, name)
        if DRIVERS[file_format].random:
            return OgrLayer.opened(path, file_format, name, reading)
        most = None if path.stat().st_size <= SMALL_BYTES else MOST_ROWS
        copy = self.folder / "columns.parquet"
        rows = columnar.copy(path, file_format, name, reading, copy, lambda _rows: None, most)
        layer = ParquetLayer.copied(copy, file_format)
        if most is not None and layer.rows >= most:
            self.inspection.complete = False
            layer.rows = rows
        return layer

    def _look(self, layer: Layer, reading: Reading, params: ValidateVectorParams) -> None:
        entry = described(layer, self.source.file_name, reading)
        self.inspection.layers = self.inspection.layers or [entry]
        self.inspection.crs = entry.crs
        self._tell_remarks(layer)
        if layer.rows > MOST_ROWS:
            self.inspection.complete = False
        with self.findings.collecting():
            self._check_times(params)
        look = LayerLook(layer, self.source.file_name, reading, params, entry, self.findings)
        self.inspection.extent = look.run()

    def _tell_remarks(self, layer: Layer) -> None:
        self.inspection.encoding = EncodingInside(name=layer.text.encoding, known_from=layer.text.known_from)
        for remark in layer.remarks:
            self.findings.warn(remark.code, [remark.message], **remark.remedies)

    def _check_times(self, params: ValidateVectorParams) -> None:
        received = self.storage.sync.stat(self.source.name).modified.isoformat()
        undated = times(params.datetime, params.start_datetime, params.end_datetime, None, received)[1]
        self.findings.warn("undated", undated, datetime=None)
