"""Base of readers that combine many files."""

from __future__ import annotations

from rio_tiler.io import BaseReader

from geomill.serve.raster.turning import TurningMixin


class ManyReader(TurningMixin, BaseReader):
    """Computes zooms from the grid. rio-tiler's single-file readers have attributes for them."""

    @property
    def minzoom(self) -> int:
        return int(self._minzoom)

    @property
    def maxzoom(self) -> int:
        return int(self._maxzoom)
