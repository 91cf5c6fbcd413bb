"""Compares a submission with the earlier one that has its idempotency key. Only an equal one is a repetition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from geomill.errors import ConflictError

MOST_NAMES = 10


def differing(first: Mapping[str, Any], again: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the names of the fields that differ. Of two mappings, the differing entries are named."""
    differing_names: list[str] = []
    for name in names:
        before, after = first.get(name), again.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            entries = dict.fromkeys([*before, *after])
            differing_names += [f"{name}.{entry}" for entry in entries if not _same(before, after, entry)]
        elif before != after:
            differing_names.append(name)
    return differing_names


def _same(before: Mapping[str, Any], after: Mapping[str, Any], entry: str) -> bool:
    return entry in before and entry in after and before[entry] == after[entry]


def key_conflict(names: list[str], *, what: str) -> ConflictError:
    """Return the error for a key whose first submission differs in these fields. It has no values: they may be large,
    or confidential."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ConflictError(
        f"the idempotency key already has a {what} that differs in {', '.join(names[:MOST_NAMES])}{more}",
        remedy="use another key, or send the same submission again",
    )


def key_taken(what: str) -> ConflictError:
    """Return the error for a key of another submitter. It says nothing about that submission."""
    return ConflictError(f"the idempotency key is taken by a {what} of another submitter", remedy="use another key")
