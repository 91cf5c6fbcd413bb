"""Identifiers."""

from __future__ import annotations

import itertools
import time
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.ids import SINGLE, canonical_json, new_id, task_id


def milliseconds(identifier: str) -> int:
    return UUID(identifier).int >> 80


def test_a_new_id_is_a_uuid_of_version_7() -> None:
    for _ in range(200):
        identity = UUID(new_id())
        assert identity.version == 7
        assert identity.variant == RFC_4122


def test_a_new_id_begins_with_the_time() -> None:
    before = time.time_ns() // 1_000_000
    identifier = new_id()
    assert before <= milliseconds(identifier) <= time.time_ns() // 1_000_000


def test_ids_of_later_milliseconds_are_greater() -> None:
    first = new_id()
    while milliseconds(second := new_id()) == milliseconds(first):
        pass
    assert second > first


def test_new_ids_are_distinct() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


def test_a_task_id_tells_what_it_is_of() -> None:
    assert task_id("job", "node", SINGLE, 1) == "job:node:1"
    assert task_id("job", "node", 0, 2) == "job:node[0]:2"


def test_a_task_id_is_new_for_every_node_item_and_attempt() -> None:
    parts = list(itertools.product(["j1", "j2"], ["a", "b", "a-1"], [SINGLE, 0, 1, 11], [1, 2, 12]))
    assert len({task_id(*part) for part in parts}) == len(parts)


@pytest.mark.parametrize(
    ("value", "text"),
    [({"b": 1, "a": {"d": [2, 1], "c": None}}, '{"a":{"c":null,"d":[2,1]},"b":1}'), ("é", '"é"'), ([], "[]")],
)
def test_canonical_json_orders_keys_and_nothing_else(value: Any, text: str) -> None:
    assert canonical_json(value) == text


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.lists(st.text(max_size=3), max_size=3)), st.randoms())
def test_equal_values_have_the_same_text_whatever_the_order_of_their_keys(value: dict[str, Any], order: Any) -> None:
    entries = list(value.items())
    order.shuffle(entries)
    assert canonical_json(dict(entries)) == canonical_json(value)
    assert canonical_json({**value, "one key more": 1}) != canonical_json(value)
