from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.api import cursors
from geomill.errors import InputError

moments = st.datetimes(min_value=datetime(1971, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
ids = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=64)


@given(moments, ids)
def test_what_goes_in_comes_out(moment: datetime, identity: str) -> None:
    assert cursors.decode(cursors.encode(moment, identity)) == (moment, identity)


@given(st.text(max_size=60))
def test_rubbish_is_refused(text: str) -> None:
    with suppress(InputError):
        moment, _ = cursors.decode(text)
        assert moment.tzinfo


@pytest.mark.parametrize("text", ["W10", "eyJ9", "WzEsMl0", "é", "A"])
def test_more_rubbish(text: str) -> None:
    with pytest.raises(InputError):
        cursors.decode(text)
