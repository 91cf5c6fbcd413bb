"""Who sees which item, as a condition of the query itself (CQL2 in JSON): counts, pages and look-ups follow from it.

A caller's own condition is never evaluated on an item that the caller may not see. It might fail on it, and the failure
would tell that it is there. `a AND b` promises no order; `NOT a OR b` is evaluated from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geomill.domain.visibility import Sight

Condition = dict[str, Any]


def visible(sight: Sight, withheld: Sequence[str] = ()) -> Condition | None:
    """`withheld` are assets whose entries are not true any more. None where everything is seen."""
    conditions = []
    if not sight.everything:
        conditions.append(_any_of(_public(), *_own(sight)))
    if withheld:
        conditions.append(_not({"op": "in", "args": [{"property": "geomill:asset_id"}, list(withheld)]}))
    return _all_of(*conditions) if conditions else None


def restricted(rule: Condition | None, wanted: Condition | None) -> Condition | None:
    """What the caller wants, among what the caller sees."""
    if rule is None or wanted is None:
        return rule or wanted
    return _all_of(rule, _any_of(_not(rule), wanted))


def _public() -> Condition:
    """One property, with an index, says what follows from approval and clearance."""
    return _equal("geomill:public", True)


def _own(sight: Sight) -> list[Condition]:
    own = []
    if sight.platform_id is not None:
        own.append(_equal("geomill:platform", sight.platform_id))
    if sight.asset_id is not None:
        own.append(_equal("geomill:asset_id", sight.asset_id))
    return own


def _equal(name: str, value: str | bool) -> Condition:
    return {"op": "=", "args": [{"property": name}, value]}


def _not(condition: Condition) -> Condition:
    return {"op": "not", "args": [condition]}


def _all_of(*conditions: Condition) -> Condition:
    return conditions[0] if len(conditions) == 1 else {"op": "and", "args": list(conditions)}


def _any_of(*conditions: Condition) -> Condition:
    return conditions[0] if len(conditions) == 1 else {"op": "or", "args": list(conditions)}
