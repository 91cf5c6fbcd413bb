"""Pinned definitions, compiled once for each gateway."""

from __future__ import annotations

from collections import OrderedDict

from geomill.domain.engine.graph import Graph, compile_graph
from geomill.store import definitions
from geomill.store.pool import Connection


class PinnedGraphs:
    """The graphs of definitions by their hash. A definition never changes, so an entry stays true."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._graphs: OrderedDict[str, Graph] = OrderedDict()

    async def get(self, conn: Connection, definition_hash: str) -> Graph:
        graph = self._graphs.get(definition_hash)
        if graph is None:
            graph = self._graphs[definition_hash] = compile_graph(await definitions.get(conn, definition_hash))
            if len(self._graphs) > self._size:
                self._graphs.popitem(last=False)
        return graph
