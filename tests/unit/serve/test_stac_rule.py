"""The rule as CQL2, judged by a small evaluator of our own over every asset and every caller."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from geomill.domain.states import ApprovalState, ClearanceState
from geomill.domain.visibility import Sight, is_public
from geomill.serve.stac.rule import restricted, visible

SIGHTS = [Sight(), Sight(everything=True), Sight(platform_id="a"), Sight(asset_id="x"), Sight(platform_id="b")]
ITEMS = [
    {
        "geomill:approval": approval,
        "geomill:clearance": clearance,
        "geomill:public": is_public(approval, clearance),
        "geomill:platform": platform,
        "geomill:asset_id": name,
    }
    for approval, clearance, platform, name in itertools.product(ApprovalState, ClearanceState, "ab", "xy")
]


class FailedError(Exception):
    """The caller's condition was evaluated on an item on which it fails."""


def holds(condition: Any, item: dict[str, Any]) -> bool:
    """From the left, as PostgreSQL evaluates OR; AND in the worst order, since it promises none."""
    if condition == "fails":
        raise FailedError
    operator, arguments = condition["op"], condition["args"]
    if operator == "and":
        return all([holds(one, item) for one in reversed(arguments)])  # noqa: C419  each of them
    if operator == "or":
        return any(holds(one, item) for one in arguments)
    if operator == "not":
        return not holds(arguments[0], item)
    value = item[arguments[0]["property"]]
    return value in arguments[1] if operator == "in" else value == arguments[1]


def seen(sight: Sight, item: dict[str, Any]) -> bool:
    return sight.sees(
        item["geomill:platform"],
        item["geomill:approval"],
        item["geomill:clearance"],
        deleted=False,
        asset_id=item["geomill:asset_id"],
    )


@pytest.mark.parametrize("sight", SIGHTS, ids=str)
def test_the_condition_is_the_rule_of_the_domain(sight: Sight) -> None:
    rule = visible(sight)
    for item in ITEMS:
        assert (rule is None or holds(rule, item)) == seen(sight, item)


@pytest.mark.parametrize("sight", SIGHTS, ids=str)
def test_what_is_withheld_is_seen_by_nobody(sight: Sight) -> None:
    rule = visible(sight, ["x"])
    assert rule is not None
    for item in ITEMS:
        assert holds(rule, item) == (seen(sight, item) and item["geomill:asset_id"] != "x")


@pytest.mark.parametrize("sight", SIGHTS, ids=str)
def test_a_callers_condition_is_never_evaluated_on_what_is_hidden(sight: Sight) -> None:
    wanted = {"op": "or", "args": ["fails"]}
    condition = restricted(visible(sight), wanted)
    assert condition is not None
    for item in ITEMS:
        if seen(sight, item):
            with pytest.raises(FailedError):
                holds(condition, item)
        else:
            assert not holds(condition, item)


def test_nothing_wanted_and_nothing_hidden() -> None:
    wanted = {"op": "=", "args": [{"property": "a"}, 1]}
    assert restricted(None, None) is None
    assert restricted(None, wanted) == wanted
    assert restricted(visible(Sight()), None) == visible(Sight())
