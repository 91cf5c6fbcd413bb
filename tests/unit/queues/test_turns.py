"""The rule by which tenants share a queue, for any lines, slots and past."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from geomill.queues.turns import HOUSE, TenantLine, TenantTurns, allot

TENANTS = ["", "a", "b", "ddh", "zz"]
tenants = st.sampled_from(TENANTS)
lines = st.sets(
    st.builds(TenantLine, st.just("q"), st.integers(-5, 10), tenants), min_size=1, max_size=len(TENANTS) * 3
)  # fmt: skip
slots = st.dictionaries(tenants, st.integers(0, 20))


def line(tenant: str, priority: int = 0) -> TenantLine:
    return TenantLine("q", priority, tenant)


@given(lines, st.integers(1, 100), slots, st.none() | tenants)
def test_every_slot_is_given_and_only_to_the_highest_priority(
    lines: set[TenantLine], free: int, slots_used: dict[str, int], last: str | None
) -> None:
    shares, served_last = allot(lines, free, slots_used, last)
    assert sum(shares.values()) == free
    assert {line.priority for line in shares} == {max(line.priority for line in lines)}
    assert served_last in {line.tenant for line in shares}


@given(lines, st.integers(1, 100), slots, st.none() | tenants)
def test_nobody_gets_a_slot_while_another_has_fewer(
    lines: set[TenantLine], free: int, slots_used: dict[str, int], last: str | None
) -> None:
    shares, _ = allot(lines, free, slots_used, last)
    highest = max(line.priority for line in lines)
    after = {line: slots_used.get(line.tenant, 0) + shares.get(line, 0) for line in lines if line.priority == highest}
    for served in shares:
        assert after[served] <= min(after.values()) + 1


@given(st.sets(tenants, min_size=1), st.none() | tenants, st.integers(1, 5))
def test_a_single_slot_passes_from_tenant_to_tenant(names: set[str], last: str | None, rounds: int) -> None:
    """Each is served once before anybody is served twice: no wait is longer than one turn of the others."""
    turns = TenantTurns()
    if last is not None:
        turns.alone({"q": last})
    served = []
    for _ in range(len(names) * rounds):
        (only,) = turns.shares([line(name) for name in names], 1)
        turns.given(["q"])
        served.append(only.tenant)
    for begin in range(0, len(served), len(names)):
        assert set(served[begin : begin + len(names)]) == names


@given(st.lists(st.tuples(tenants, st.integers(1, 30)), min_size=1, max_size=60), st.integers(1, 8))
def test_who_has_nothing_waits_for_one_free_slot_and_no_longer(arrivals: list[tuple[str, int]], size: int) -> None:
    """A worker of so many slots, and tasks of any length: whenever a slot becomes free, it is a newcomer's."""
    waiting: Counter[str] = Counter(tenant for tenant, _ in arrivals)
    lengths = {name: [length for tenant, length in arrivals if tenant == name] for name in TENANTS}
    running: list[tuple[int, str]] = []
    turns = TenantTurns(lambda _: Counter(tenant for _, tenant in running))
    now = 0
    while waiting:
        slots_used = Counter(tenant for _, tenant in running)
        (chosen,) = turns.shares([line(tenant) for tenant in waiting], 1)
        turns.given(["q"])
        assert slots_used[chosen.tenant] == min(slots_used[tenant] for tenant in waiting)
        running.append((now + lengths[chosen.tenant].pop(), chosen.tenant))
        waiting = waiting - Counter([chosen.tenant])
        if len(running) == size:
            now = min(running)[0]
            running.remove(min(running))


def test_alone_the_order_is_that_of_the_line() -> None:
    assert allot([line(HOUSE)], 16, {HOUSE: 4}, HOUSE) == ({line(HOUSE): 16}, HOUSE)


def test_what_has_just_come_counts_as_held() -> None:
    assert TenantTurns().shares([line("a"), line("b")], 2, ["a", "a"]) == {line("b"): 2}


def test_a_turn_that_was_not_given_does_not_count() -> None:
    """A claim that was rolled back meets the same message again."""
    turns = TenantTurns()
    first = turns.shares([line("a"), line("b")], 1)
    assert turns.shares([line("a"), line("b")], 1) == first == {line("a"): 1}
    turns.given(["q"])
    assert turns.shares([line("a"), line("b")], 1) == {line("b"): 1}
