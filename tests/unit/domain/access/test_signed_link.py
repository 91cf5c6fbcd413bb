from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from geomill.domain.access.signed_link import LONGEST_SECONDS, LinkKey

KEY, OTHER = LinkKey(b"k" * 32), LinkKey(b"o" * 32)
NOW = 1_800_000_000


def test_a_ticket_opens_its_asset_until_it_ends() -> None:
    ticket = KEY.ticket("a", NOW + 10, 3)
    assert KEY.generation(ticket, "a", NOW) == 3
    assert KEY.generation(ticket, "a", NOW + 9.9) == 3
    assert KEY.generation(ticket, "a", NOW + 10) is None
    assert KEY.generation(ticket, "b", NOW) is None
    assert OTHER.generation(ticket, "a", NOW) is None


def test_no_ticket_lives_longer_than_any_that_is_given() -> None:
    assert KEY.generation(KEY.ticket("a", NOW + LONGEST_SECONDS + 1, 0), "a", NOW) is None


@given(st.text(max_size=80))
def test_nothing_else_opens(text: str) -> None:
    assert KEY.generation(text, "a", NOW) is None


@given(st.integers(0, 55), st.sampled_from("Aa0_-9"))
def test_a_changed_ticket_does_not_open(place: int, character: str) -> None:
    ticket = KEY.ticket("a", NOW + 10, 0)
    changed = ticket[:place] + character + ticket[place + 1 :]
    assert (KEY.generation(changed, "a", NOW) is not None) == (changed == ticket)


def test_the_key_is_not_shown() -> None:
    assert "kkkk" not in repr(KEY)
