"""A URL that is shown has no password and no values in its query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.domain.access.confidential import masked_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/hook", "https://example.org/hook"),
        ("https://example.org/@me/hook", "https://example.org/@me/hook"),
        ("https://example.org/h?token=abc&x#abc", "https://example.org/h?token=…"),
        ("postgresql://me:abc@db/geomill?sslmode=require", "postgresql://me:…@db/geomill?sslmode=require"),
        ("postgresql://me:abc@one:5432,two:5432/g", "postgresql://me:…@one:5432,two:5432/g"),
        ("postgresql://me:a@abc@db/g", "postgresql://me:…@db/g"),
        ("postgresql://me:abc/d@db/g", "…"),
        ("postgresql://me:123/abc@db/g", "…"),
        ("postgresql://me:a@b/abc@db/g", "…"),
        ("postgresql://me:abc#d@db/g", "…"),
        ("https://[::1", "…"),
    ],
)
def test_what_is_shown(url: str, shown: str) -> None:
    assert masked_url(url) == shown


characters = st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters=" ")


@given(st.text(characters, min_size=1, max_size=20))
def test_no_password_is_shown(password: str) -> None:
    """Also if a character in it should have been escaped."""
    assert "S3CRET" not in masked_url(f"postgresql://me:{password}S3CRET@db.example.org:5432/geomill?sslmode=require")
    value = password.replace("&", "")
    assert "S3CRET" not in masked_url(f"postgresql://db.example.org/geomill?user=me&password={value}S3CRET")
