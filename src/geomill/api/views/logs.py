"""Views of log lines."""

from __future__ import annotations

from dataclasses import replace

from geomill.api.definitions import PinnedGraphs
from geomill.contract.logs import LEVELS, LogFilters, LogLine
from geomill.domain.engine.log import TaskLog
from geomill.domain.ids import SINGLE
from geomill.errors import InputError, Problem
from geomill.store import jobs
from geomill.store.logs import LogFilter
from geomill.store.pool import Connection


def log_filter(filters: LogFilters) -> LogFilter:
    """Return the filter of the store. Raises `InputError` for an item without its node."""
    if filters.item_index is not None and filters.node_id is None:
        problem = Problem("item_index", f"the item {filters.item_index} has no node", "give node_id, too")
        raise InputError(f"the filters are wrong: {problem}", problems=[problem])
    levels = LEVELS[LEVELS.index(filters.level) :] if filters.level else None
    return LogFilter(filters.node_id, filters.item_index, filters.attempt, levels)


async def narrowed(conn: Connection, graphs: PinnedGraphs, job_id: str, chosen: LogFilter) -> LogFilter:
    """Return the same filter with all that the index needs. The lines of a node that is no fan-out are then found at
    once, and not among those of ten thousand items."""
    if chosen.node_id is None or chosen.item_index is not None:
        return chosen
    job = await jobs.find(conn, job_id)
    graph = await graphs.get(conn, job.definition_hash) if job and job.definition_hash else None
    node = graph.nodes.get(chosen.node_id) if graph else None
    return chosen if node is None or node.definition.type == "fan_out" else replace(chosen, item_index=SINGLE)


def log_line(line: TaskLog) -> LogLine:
    fields = line.model_dump(include=set(LogLine.model_fields))
    return LogLine(**{**fields, "item_index": None if line.item_index == SINGLE else line.item_index})
