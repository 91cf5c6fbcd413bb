"""Views of log lines."""

from __future__ import annotations

from geomill.contract.logs import LEVELS, LogFilters, LogLine
from geomill.domain.engine.log import TaskLog
from geomill.domain.ids import SINGLE
from geomill.errors import InputError, Problem
from geomill.store.logs import LogFilter


def log_filter(filters: LogFilters) -> LogFilter:
    """Return the filter of the store. Raises `InputError` for an item without its node."""
    if filters.item_index is not None and filters.node_id is None:
        problem = Problem("item_index", f"the item {filters.item_index} has no node", "give node_id, too")
        raise InputError(f"the filters are wrong: {problem}", problems=[problem])
    levels = LEVELS[LEVELS.index(filters.level) :] if filters.level else None
    return LogFilter(filters.node_id, filters.item_index, filters.attempt, levels)


def log_line(line: TaskLog) -> LogLine:
    fields = line.model_dump(include=set(LogLine.model_fields))
    return LogLine(**{**fields, "item_index": None if line.item_index == SINGLE else line.item_index})
