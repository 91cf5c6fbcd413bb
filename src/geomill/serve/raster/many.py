"""What readers of many files at once have in common."""

from __future__ import annotations

from rio_tiler.io import BaseReader


class ManyReader(BaseReader):
    """Its zooms follow from its grid: rio-tiler's readers of one file have attributes for them."""

    @property
    def minzoom(self) -> int:
        return int(self._minzoom)

    @property
    def maxzoom(self) -> int:
        return int(self._maxzoom)
