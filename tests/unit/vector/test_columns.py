"""Names of columns: whatever a file calls them, a table can, and no two are the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from geomill.domain.reserved import RESERVED
from geomill.vector.columns import LONGEST, OURS, SYSTEM, column_names

traps = st.sampled_from(["select", "Select", "GEOM", "gid", "a b", "A_B", "ǅ", "ß" * 40, ""])
words = st.one_of(st.text(max_size=80), traps)


@given(st.lists(words, max_size=12))
def test_they_are_good_and_occur_once(given_names: list[str]) -> None:
    columns = column_names(given_names)
    assert len(columns) == len(given_names)
    assert len(set(columns)) == len(columns)
    for name in columns:
        assert name
        assert len(name.encode()) <= LONGEST
        assert name not in RESERVED | OURS | SYSTEM
        assert name.replace("_", "a").isalnum()
        assert not name[0].isdigit()


@given(st.lists(words, max_size=12))
def test_good_names_stay(given_names: list[str]) -> None:
    columns = column_names(given_names)
    assert column_names(columns) == columns


def test_they_can_still_be_recognised() -> None:
    given_names = ["Name", "population 2020", "order", "2nd", "Größe", "a-b", "a_b", "ID", "xmin"]
    assert column_names(given_names) == [
        "name", "population_2020", "order_", "_2nd", "grosse", "a_b_2", "a_b", "id", "xmin_",
    ]  # fmt: skip
